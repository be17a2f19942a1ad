"""The context of every page: the person, their tenants, and the current tenant."""

from functools import partial
from typing import Any
from urllib.parse import urlsplit

from django.http import HttpRequest
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme

from hekla.apps.accounts import selectors as accounts
from hekla.apps.accounts.models import User
from hekla.apps.accounts.roles import Permission
from hekla.apps.identities import providers
from hekla.pages.frame import current_tenant
from hekla.pages.frame.rail import Section
from hekla.pages.frame.rail import items as navigation_items


def _here(request: HttpRequest) -> str:
    """The page to return to. A form's target may not be a page, so a POST returns to the page that sent it."""
    if request.method in {"GET", "HEAD"}:
        return request.get_full_path()
    sent_from = request.headers.get("Referer", "")
    is_ours = url_has_allowed_host_and_scheme(sent_from, {request.get_host()}, require_https=request.is_secure())
    return urlsplit(sent_from)._replace(scheme="", netloc="").geturl() if is_ours else reverse("home")


def navigation(request: HttpRequest) -> dict[str, Any]:
    """`nav`: flags and tenants for the page frame."""
    if not hasattr(request, "user"):  # refused before the session was read, for example because of its Host header
        return {"nav": {"here": reverse("home"), "providers": [], "tenants": [], "tenant": None}}
    frame = {"here": _here(request), "providers": providers.every()}
    if not isinstance(request.user, User):
        return {"nav": {**frame, "tenants": [], "tenant": None}}
    user, tenant = request.user, current_tenant.tenant(request)
    return {
        "nav": {
            **frame,
            "is_platform_admin": accounts.may(user, Permission.MANAGE_PEOPLE),
            "may_see_everything": accounts.may(user, Permission.SEE_EVERYTHING),
            "may_manage_clusters": accounts.may(user, Permission.MANAGE_CLUSTERS),
            "may_manage_queues": accounts.may(user, Permission.MANAGE_QUEUES),
            "may_manage_tenants": accounts.may(user, Permission.MANAGE_TENANTS),
            "tenants": current_tenant.rights(request).tenants,
            "tenant": tenant,
            "scope": current_tenant.scope(request),
            "may_see_several": current_tenant.may_see_several(request),
            # called only when the rail is rendered, which is rare
            **{section.value: partial(navigation_items, section, user) for section in Section},
        }
    }


def flags(user: User) -> dict[str, bool]:
    """The flags of `nav` that live parts need."""
    return {
        "may_manage_clusters": accounts.may(user, Permission.MANAGE_CLUSTERS),
        "may_manage_queues": accounts.may(user, Permission.MANAGE_QUEUES),
    }
