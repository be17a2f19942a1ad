"""Endpoints of quotas of tenants and their members."""

from typing import Any, ClassVar

from django.utils.translation import gettext as _
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from hekla.api.arrays import ArrayQuery, array
from hekla.api.documents import validated
from hekla.api.v1.queue_serializers import AmountsField
from hekla.api.views import ApiView, person
from hekla.apps.accounts.services import actor_of
from hekla.apps.quotas import services
from hekla.apps.quotas.models import Quota
from hekla.apps.tenancy import selectors as tenancy
from hekla.apps.usage import quota_usage
from hekla.apps.usage.quota_usage import QuotaRow
from hekla.domain.errors import Invalid, Problem
from hekla.lib import clock

_MOST = 10_000_000


class QuotaRowSerializer(serializers.Serializer[Any]):
    """Limits (null: none) and usage. `username` is null for the tenant itself."""

    username = serializers.CharField(source="user.username", default=None, allow_null=True)
    jobs = serializers.IntegerField(help_text="unfinished jobs")
    most_jobs = serializers.IntegerField(source="quota.jobs", default=None, allow_null=True)
    sessions = serializers.IntegerField(help_text="unfinished debugging sessions")
    most_sessions = serializers.IntegerField(source="quota.sessions", default=None, allow_null=True)
    gpu_hours = serializers.FloatField(help_text="this month (UTC), on cards of any kind together")
    card_hours = serializers.DictField(child=serializers.FloatField(), help_text="the same by resource")
    most_gpu_hours = serializers.IntegerField(source="quota.gpu_hours", default=None, allow_null=True)
    resources = serializers.SerializerMethodField(help_text="resources in use by cluster, if they are limited")
    most_resources = AmountsField(source="quota.resources", default=dict, help_text="resources in use, in each cluster")

    def get_resources(self, row: QuotaRow) -> dict[str, dict[str, str]]:
        """Kubernetes quantities."""
        return {cluster: held.quantities() for cluster, held in row.held.items()}


class QuotaSerializer(serializers.Serializer[dict[str, Any]]):
    """A quota to set: of the tenant, of each member, or of one member. null: no limit.

    Omitted limits stay unchanged.
    """

    rules: ClassVar[dict[str, Any]] = {
        "oneOf": [
            {"properties": {"of": {"const": Quota.Of.ONE.value}}, "required": ["username"]},
            {"properties": {"of": {"not": {"const": Quota.Of.ONE.value}}}, "not": {"required": ["username"]}},
        ]
    }
    of = serializers.ChoiceField(choices=Quota.Of.choices)
    username = serializers.CharField(required=False, default="", max_length=150)
    jobs = serializers.IntegerField(required=False, min_value=0, max_value=_MOST, allow_null=True)
    sessions = serializers.IntegerField(required=False, min_value=0, max_value=_MOST, allow_null=True)
    resources = AmountsField(required=False, help_text="resources in use, in each cluster; {}: no limit")
    gpu_hours = serializers.IntegerField(required=False, min_value=0, max_value=_MOST, allow_null=True)


class QuotasView(ApiView):
    queries = {"get": ArrayQuery, "put": ArrayQuery}

    @extend_schema(responses=QuotaRowSerializer(many=True))
    def get(self, request: Request, slug: str) -> Response:
        """Quotas and usage of the tenant and its members. Only people who can set quotas see other members."""
        tenant = tenancy.get(slug, person(request))
        return array(request, quota_usage.visible_rows(person(request), tenant, clock.now()), QuotaRowSerializer)

    @extend_schema(request=QuotaSerializer, responses=QuotaRowSerializer(many=True))
    def put(self, request: Request, slug: str) -> Response:
        """Set a quota: of the tenant (operators, platform admins) or of members (tenant admins)."""
        user = person(request)
        tenant, values = tenancy.get(slug, user), validated(QuotaSerializer(data=request.data))
        name, of = values.pop("username"), Quota.Of(values.pop("of"))
        one = next((m.user for m in tenancy.members(tenant) if m.user.username == name), None)
        if (of is Quota.Of.ONE) is not bool(name) or bool(name) is not (one is not None):
            raise Invalid([Problem("username", _("Name a member of the tenant for “one”, and nobody otherwise."))])
        now = clock.now()
        services.set_quota(tenant=tenant, of=of, user=one, bounds=values, by=user, actor=actor_of(user), now=now)
        return array(request, quota_usage.visible_rows(user, tenant, now), QuotaRowSerializer)
