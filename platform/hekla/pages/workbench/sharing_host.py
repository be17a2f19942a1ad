"""What a person reads, and agrees to, before they enter a session at the host that all sessions share."""

from typing import Any

from django.conf import settings
from django.http import HttpRequest

from hekla.apps.workbench import browsers, entry
from hekla.apps.workbench.models import ToolSession
from hekla.pages.frame.people import person

_FIELD = "agreed"


def has_agreed(request: HttpRequest) -> bool:
    """Whether this request comes from the button below the notice, or no notice is needed."""
    return not settings.WORKBENCH_HOST or bool(request.POST.get(_FIELD))


def part(session: ToolSession, request: HttpRequest) -> dict[str, Any]:
    """The context of `_sharing_host.html`."""
    return {
        "shared_host_notices": entry.shared_host_notices(session),
        "ends_other": browsers.open_elsewhere(session, person(request).pk),
    }
