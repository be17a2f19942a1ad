"""What requests have in common: for which tenant, under which key, and of which names."""

from typing import Any

from django.db.models import QuerySet
from django.utils.translation import gettext as _
from drf_spectacular.utils import OpenApiParameter
from rest_framework.request import Request

from hekla.api.views import person
from hekla.apps.tenancy import selectors as tenancy
from hekla.apps.tenancy.models import Tenant
from hekla.domain.errors import Invalid, Problem

_MAX_KEY = 200
NAME_AND_TENANT = [
    OpenApiParameter("name", str, description="exactly this name"),
    OpenApiParameter("tenant", str, description="the tenant's short name"),
]


def tenant_of(request: Request) -> Tenant:
    """The tenant that the request names, else the first that the person belongs to. Raises NotFound, Invalid."""
    user, slug = person(request), request.query_params.get("tenant", "")
    tenant = tenancy.get(slug, user) if slug else tenancy.chosen(list(tenancy.own(user)), "")
    if tenant is None:
        raise Invalid([Problem("tenant", _("You are not a member of a tenant yet; ask a platform admin."))])
    return tenant


def key_of(request: Request) -> str:
    """The idempotency key, empty without one. Raises Invalid."""
    key = request.headers.get("Idempotency-Key", "")
    if len(key) > _MAX_KEY:
        message = _("The key has more than %(most)d letters.") % {"most": _MAX_KEY}
        raise Invalid([Problem("Idempotency-Key", message)])
    return key


def narrowed(request: Request, found: QuerySet[Any]) -> QuerySet[Any]:
    """Of what has names and belongs to tenants, what the request asks for (`NAME_AND_TENANT`)."""
    asked = request.query_params
    wanted = {"name": asked.get("name"), "tenant__slug": asked.get("tenant")}
    return found.filter(**{field: value for field, value in wanted.items() if value})


def is_dry_run(request: Request) -> bool:
    """Whether what is sent is only to be judged."""
    return request.query_params.get("dry_run") in {"1", "true"}
