"""Django's database settings from a URL.

Web processes use a connection pool: each request has its own thread, which would otherwise open and close a
connection. A worker has a few long-lived threads, and each keeps its connection.
"""

from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

_POOL_WAIT_SECONDS = 10.0
_POOL_IDLE_SECONDS = 60.0


def from_url(url: str) -> dict[str, Any]:
    """`postgresql://user:password@host:port/name?host=/socket/folder` as an entry of DATABASES."""
    parts = urlsplit(url)
    query: dict[str, Any] = dict(parse_qsl(parts.query))
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": unquote(parts.path.lstrip("/")),
        "USER": query.pop("user", unquote(parts.username or "")),
        "PASSWORD": query.pop("password", unquote(parts.password or "")),
        "HOST": query.pop("host", parts.hostname or ""),
        "PORT": query.pop("port", str(parts.port or "")),
        "CONN_MAX_AGE": None,
        "CONN_HEALTH_CHECKS": True,
        "OPTIONS": query,
    }


def share_connections(entry: dict[str, Any], size: int) -> None:
    """Let the threads of this process share at most `size` connections of this entry of DATABASES.

    Call it before the first connection is opened. It is not in the settings, because `manage.py up` loads the settings
    once for all kinds of processes.
    """
    entry["OPTIONS"]["pool"] = {
        "min_size": 1,
        "max_size": size,
        "timeout": _POOL_WAIT_SECONDS,
        "max_idle": _POOL_IDLE_SECONDS,
        "num_workers": 1,
    }
    entry["CONN_MAX_AGE"] = 0  # return the connection to the pool after each request
