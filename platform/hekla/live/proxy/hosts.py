"""The requests to hosts of sessions: `<slug>.<workbench domain>`, or `<workbench host>/<slug>/` (see `paths.py`).

They never reach Django, nor its cookies them.

Their code is imported for the first of them, so that the console itself answers before.
"""

import re
from collections.abc import Awaitable, Callable
from typing import Any

from django.conf import settings

from hekla.lib.late_imports import import_in_thread

Application = Callable[..., Awaitable[None]]
_SLUG = re.compile(r"[a-z2-7]{26}")


def slug_of(host: bytes) -> str | None:
    """The slug in a `Host` header; None if it is no host of a session. Empty at the host that all sessions share."""
    name = host.decode("latin-1").lower().partition(":")[0].removesuffix(".")
    if settings.WORKBENCH_HOST:
        return "" if name == settings.WORKBENCH_HOST else None
    slug, _, domain = name.partition(".")
    return slug if domain == settings.WORKBENCH_DOMAIN and _SLUG.fullmatch(slug) else None


class SessionHosts:
    """An ASGI application in front of all others."""

    def __init__(self, application: Application) -> None:
        self._application = application

    async def __call__(self, scope: dict[str, Any], receive: Application, send: Application) -> None:
        """Serve a request to a session; the application serves the others."""
        if scope["type"] in ("http", "websocket"):
            hosts = [value for name, value in scope["headers"] if name == b"host"]
            slug = next((slug for slug in map(slug_of, hosts) if slug is not None), None)
            if slug is not None:
                requests = await import_in_thread("hekla.live.proxy.requests")
                await requests.serve(scope, receive, send, slug, hosts)
                return
        await self._application(scope, receive, send)
