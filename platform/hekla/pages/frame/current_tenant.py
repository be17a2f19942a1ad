"""The standing of whoever asks for a page, read once however many parts of the page want to know it."""

from django.http import HttpRequest

from hekla.apps.tenancy import selectors
from hekla.apps.tenancy.models import Tenant
from hekla.apps.tenancy.selectors import Rights
from hekla.pages.frame.people import person


def rights(request: HttpRequest) -> Rights:
    """What they may do in tenants. Whoever is acted for has rights of their own."""
    user = person(request)
    read: dict[int, Rights] = request.__dict__.setdefault("_rights", {})
    if user.pk not in read:
        read[user.pk] = selectors.rights(user)
    return read[user.pk]


def tenant(request: HttpRequest) -> Tenant | None:
    """The tenant that they work for now: the one they chose in this session, else the first of their own."""
    return selectors.chosen(rights(request).tenants, request.session.get("tenant", ""))
