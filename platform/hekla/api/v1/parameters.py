"""Common request parameters: tenant, idempotency key, name filters, dry run."""

from django.utils.translation import gettext as _
from django_filters import CharFilter, FilterSet
from rest_framework.request import Request

from hekla.api.views import person
from hekla.apps.tenancy import selectors as tenancy
from hekla.apps.tenancy.models import Tenant
from hekla.domain.errors import Invalid, Problem

_MAX_KEY = 200


def tenant_of(request: Request) -> Tenant:
    """The tenant in the request, otherwise the first tenant of the person. Raises NotFound, Invalid."""
    user, slug = person(request), request.query_params.get("tenant", "")
    tenant = tenancy.get(slug, user) if slug else tenancy.chosen(list(tenancy.own(user)), "")
    if tenant is None:
        raise Invalid([Problem("tenant", _("You are not a member of a tenant. Ask a platform admin."))])
    return tenant


def idempotency_key(request: Request) -> str:
    """The idempotency key, empty without one. Raises Invalid."""
    key = request.headers.get("Idempotency-Key", "")
    if len(key) > _MAX_KEY:
        message = _("The key exceeds %(most)d characters.") % {"most": _MAX_KEY}
        raise Invalid([Problem("Idempotency-Key", message)])
    return key


class NameAndTenant(FilterSet):  # type: ignore[misc]
    """Filters of resources that have a name and a tenant."""

    name = CharFilter(help_text="exact name")
    tenant = CharFilter(field_name="tenant__slug", help_text="short name of the tenant")


def is_dry_run(request: Request) -> bool:
    """Whether the request asks for validation only (`dry_run`)."""
    return request.query_params.get("dry_run") in {"1", "true"}
