"""The rights and the current tenant of the person, read once per request, and the tenant that lists are limited to."""

from django.http import HttpRequest

from hekla.apps.accounts import selectors as accounts
from hekla.apps.accounts.roles import Permission
from hekla.apps.tenancy import selectors
from hekla.apps.tenancy.models import Tenant
from hekla.apps.tenancy.selectors import Rights
from hekla.pages.frame.people import person

SCOPE = "scope"
"""The key in the session: the short name of the tenant that lists are limited to."""


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


def scope(request: HttpRequest) -> Tenant | None:
    """The only tenant whose things lists show, as the person chose; None: all that the person may see."""
    slug = request.session.get(SCOPE, "")
    return next((one for one in rights(request).tenants if one.slug == slug), None)


def may(request: HttpRequest, tenant: Tenant, permission: Permission) -> bool:
    """Whether the person's role in that tenant, in its department, or on the platform has the permission."""
    return accounts.may(person(request), permission) or tenant.pk in rights(request).where(permission)


def may_see_several(request: HttpRequest) -> bool:
    """Whether lists could show things of more than one tenant."""
    return len(rights(request).tenants) > 1 or accounts.may(person(request), Permission.SEE_EVERYTHING)
