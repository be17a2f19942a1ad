"""What every page knows: who is looking, their tenants, and the one they work for now."""

from typing import Any

from django.http import HttpRequest

from hekla.apps.accounts import selectors as accounts
from hekla.apps.accounts.models import User
from hekla.apps.accounts.roles import Permission
from hekla.apps.tenancy import selectors as tenancy


def navigation(request: HttpRequest) -> dict[str, Any]:
    """`nav`: flags and tenants for the frame of the page."""
    if not isinstance(request.user, User):
        return {"nav": {"tenants": [], "tenant": None}}
    user = request.user
    return {
        "nav": {
            "is_platform_admin": accounts.may(user, Permission.MANAGE_PEOPLE),
            "may_manage_clusters": accounts.may(user, Permission.MANAGE_CLUSTERS),
            "may_manage_queues": accounts.may(user, Permission.MANAGE_QUEUES),
            "may_manage_tenants": accounts.may(user, Permission.MANAGE_TENANTS),
            "tenants": list(tenancy.own(user)),
            "tenant": tenancy.current(user, request.session.get("tenant", "")),
        }
    }
