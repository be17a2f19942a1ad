"""The rights and the current tenant of the person, read once per request."""

from django.http import HttpRequest

from hekla.apps.tenancy import selectors
from hekla.apps.tenancy.models import Tenant
from hekla.apps.tenancy.selectors import Rights
from hekla.pages.frame.people import person


def rights(request: HttpRequest) -> Rights:
    """The person's rights in tenants. Cached per person, because impersonation changes the person within a request."""
    user = person(request)
    read: dict[int, Rights] = request.__dict__.setdefault("_rights", {})
    if user.pk not in read:
        read[user.pk] = selectors.rights(user)
    return read[user.pk]


def tenant(request: HttpRequest) -> Tenant | None:
    """The current tenant: the one chosen in this session, else the person's first; None without tenants."""
    return selectors.chosen(rights(request).tenants, request.session.get("tenant", ""))
