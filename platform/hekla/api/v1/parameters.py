"""Common request parameters: tenant, idempotency key, name filters, dry run."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.db.models import QuerySet
from django.utils.translation import gettext as _
from django_filters import CharFilter, FilterSet
from django_filters.rest_framework import DjangoFilterBackend
from drf_spectacular.utils import OpenApiParameter
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.views import APIView

from hekla.api.views import person
from hekla.apps.event_log.services import dry_run
from hekla.apps.query_parameters import require_effective
from hekla.apps.tenancy import selectors as tenancy
from hekla.apps.tenancy.models import Tenant
from hekla.domain.errors import Invalid, Problem

_MAX_KEY = 200
IDEMPOTENCY_KEY = OpenApiParameter(
    "Idempotency-Key",
    {"type": "string", "maxLength": _MAX_KEY},
    OpenApiParameter.HEADER,
    description="a request with the same key returns the first result",
)


class TenantQuery(serializers.Serializer[Any]):
    tenant = serializers.CharField(required=False, max_length=200, help_text="short name; default: your first tenant")


class DryRunQuery(serializers.Serializer[Any]):
    dry_run = serializers.BooleanField(default=False, help_text="check only, save nothing")


class SubmissionQuery(TenantQuery, DryRunQuery):
    """Where to submit, or whether to check only."""


def tenant_of(request: Request) -> Tenant:
    """The tenant in the request, otherwise the first tenant of the person. Raises NotFound, Invalid."""
    user, slug = person(request), request.query_params.get("tenant", "")
    tenant = tenancy.get(slug, user) if slug else tenancy.chosen(tenancy.rights(user).tenants, "")
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


class EffectiveFilters(DjangoFilterBackend):  # type: ignore[misc]
    """Refuses filters without effect: who looks up a row by an empty name would get the first row of all."""

    def filter_queryset(self, request: Request, queryset: QuerySet[Any], view: APIView) -> QuerySet[Any]:
        """The rows that match the filters. Raises Invalid."""
        names = [*self.get_filterset_class(view, queryset).base_filters, "limit", "cursor"]
        require_effective(request.query_params, dict.fromkeys(names, ()))
        found: QuerySet[Any] = super().filter_queryset(request, queryset, view)
        return found


@contextmanager
def undone_if(is_dry_run: bool) -> Iterator[int]:
    """The status of what is created in it: 201, or 200 for a dry run, whose changes are undone."""
    if not is_dry_run:
        yield 201
        return
    with dry_run():
        yield 200
