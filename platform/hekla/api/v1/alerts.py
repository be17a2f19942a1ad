"""Endpoints of alerts: what fires now, the rules, their history, and what a rule would say."""

from datetime import timedelta
from typing import Any
from uuid import UUID

from django.db.models import QuerySet
from drf_spectacular.utils import OpenApiRequest, extend_schema, extend_schema_field, extend_schema_view
from rest_framework import serializers
from rest_framework.generics import ListAPIView
from rest_framework.request import Request
from rest_framework.response import Response

from hekla.api.arrays import ArrayQuery, array
from hekla.api.documents import validated
from hekla.api.queries import PageQuery
from hekla.api.v1.parameters import EffectiveFilters, NameAndTenant
from hekla.api.v1.schema import ALERT_RULE_CHANGE, ALERT_RULE_SPEC
from hekla.api.views import ApiView, CursorPages, DeletableViewSet, person, respond
from hekla.apps.accounts.scopes import Scope
from hekla.apps.alerts import checks, labels, measures, preview, selectors, services
from hekla.apps.alerts.measures import AlertMeasure
from hekla.apps.alerts.models import MAX_REASON, Alert, AlertAction, AlertChange, AlertRule
from hekla.apps.alerts.services.rules import LONGEST_SILENCE
from hekla.apps.tenancy import selectors as tenancy
from hekla.apps.tenancy.models import Tenant
from hekla.domain.alert_rules import AlertRuleSpec
from hekla.domain.alerts import AlertState
from hekla.lib import clock

_MOST = 200
_STATES = ", ".join(AlertState)


class AboutTenantQuery(serializers.Serializer[Any]):
    tenant = serializers.CharField(
        required=False,
        max_length=200,
        help_text="short name of the tenant that the rule is about; default: the platform",
    )


class AlertSerializer(serializers.ModelSerializer[Alert]):
    """The state of a rule for one subject. Subjects without one are normal."""

    rule = serializers.CharField(source="rule.name")
    rule_uid = serializers.UUIDField(source="rule.uid")
    tenant = serializers.CharField(source="rule.tenant.slug", default=None, allow_null=True)
    severity = serializers.CharField(source="rule.severity")
    state = serializers.CharField(help_text=_STATES)

    class Meta:
        model = Alert
        fields = [
            *("rule", "rule_uid", "tenant", "severity", "subject", "name", "state", "since", "fired_at", "value"),
            "is_flapping",
        ]


class AlertRuleSerializer(serializers.ModelSerializer[AlertRule]):
    """A rule in a list. `fault`: why it cannot be evaluated."""

    tenant = serializers.CharField(source="tenant.slug", default=None, allow_null=True)
    owner = serializers.CharField(source="owner.username")
    measure = serializers.CharField(source="spec.measure")
    condition = serializers.SerializerMethodField()

    class Meta:
        model = AlertRule
        fields = [
            *("uid", "name", "tenant", "owner", "measure", "condition", "severity", "is_enabled", "silenced_until"),
            *("silence_reason", "fault", "looked_at", "created_at"),
        ]

    def get_condition(self, rule: AlertRule) -> str:
        """When it fires, in words."""
        return labels.condition(selectors.spec_of(rule))


class AlertRuleDetailSerializer(AlertRuleSerializer):
    """A rule with its spec, and its states that are not normal. Only who may edit it sees the URL of its webhook."""

    spec = serializers.SerializerMethodField()
    alerts = serializers.SerializerMethodField()

    class Meta(AlertRuleSerializer.Meta):
        fields = [*AlertRuleSerializer.Meta.fields, "spec", "alerts"]

    @extend_schema_field(ALERT_RULE_SPEC)
    def get_spec(self, rule: AlertRule) -> Any:  # noqa: ANN401  (serialized data)
        """As it is sent to create a rule."""
        document = selectors.spec_of(rule).document()
        if not selectors.may_set(person(self.context["request"]), rule.tenant):
            document["actions"] = [_without_url(action) for action in document["actions"]]
        return document

    @extend_schema_field(AlertSerializer(many=True))
    def get_alerts(self, rule: AlertRule) -> Any:  # noqa: ANN401  (serialized data)
        """At most 200, open ones first."""
        return AlertSerializer(selectors.alerts_of(rule).select_related("rule__tenant")[:_MOST], many=True).data


def _without_url(action: dict[str, Any]) -> dict[str, Any]:
    return {**action, "url": ""} if "url" in action else action


class SavedAlertRuleSerializer(serializers.Serializer[Any]):
    """A saved rule. `webhook_secret`: signs the requests of a new webhook, and is shown only now; else empty."""

    rule = AlertRuleDetailSerializer()
    webhook_secret = serializers.CharField()


class SilenceSerializer(serializers.Serializer[Any]):
    """For how long, and why."""

    hours = serializers.IntegerField(min_value=1, max_value=LONGEST_SILENCE.days * 24 - 1)
    reason = serializers.CharField(max_length=MAX_REASON)


class AlertChangeSerializer(serializers.ModelSerializer[AlertChange]):
    """A change of a state, with the figures of its evaluation."""

    old = serializers.CharField(help_text=_STATES)
    new = serializers.CharField(help_text=_STATES)

    class Meta:
        model = AlertChange
        fields = ["at", "subject", "name", "old", "new", "reason", "value", "threshold", "clear"]


class AlertActionSerializer(serializers.ModelSerializer[AlertAction]):
    """What a rule did, or is about to do. `moment`: `fire`, `clear`, or `announce` (of a change that can be vetoed)."""

    is_vetoable = serializers.BooleanField(help_text="it waits, and can be vetoed until `due_at`")

    class Meta:
        model = AlertAction
        fields = [
            *("uid", "created_at", "kind", "moment", "subject", "name", "attempts", "done_at", "abandoned_at"),
            *("result", "error", "due_at", "is_vetoable"),
        ]


class AlertHistorySerializer(serializers.Serializer[Any]):
    """The newest changes and actions of a rule."""

    changes = AlertChangeSerializer(many=True)
    actions = AlertActionSerializer(many=True)


class AlertMeasureSerializer(serializers.Serializer[Any]):
    """What a rule can measure. `has_past`: a rule can be tested against the last days."""

    name = serializers.CharField()
    meaning = serializers.CharField(source="label")
    unit = serializers.CharField()
    subject = serializers.CharField()
    for_tenants = serializers.BooleanField()
    has_window = serializers.BooleanField()
    has_past = serializers.SerializerMethodField()

    def get_has_past(self, measure: AlertMeasure) -> bool:
        return measure.past is not None


class PresentValueSerializer(serializers.Serializer[Any]):
    subject = serializers.CharField(source="subject.text")
    name = serializers.CharField(source="subject.name")
    value = serializers.FloatField()
    is_breach = serializers.BooleanField()


class EpisodeSerializer(serializers.Serializer[Any]):
    """When the rule would have fired; `until` is null if it still did. `peak`: the worst value."""

    subject = serializers.CharField()
    begin = serializers.DateTimeField()
    until = serializers.DateTimeField(allow_null=True)
    peak = serializers.FloatField()


class RulePastSerializer(serializers.Serializer[Any]):
    """The last days. `is_possible`: whether past values of the measure are known."""

    is_possible = serializers.BooleanField()
    since = serializers.DateTimeField()
    count = serializers.IntegerField()
    episodes = EpisodeSerializer(many=True)


class RulePreviewSerializer(serializers.Serializer[Any]):
    """The present values, the worst first, and what the rule would have said in the last days."""

    values = PresentValueSerializer(many=True)
    count = serializers.IntegerField()
    breaches = serializers.IntegerField()
    no_data = serializers.ListField(child=serializers.CharField(), help_text="clusters without data")
    past = RulePastSerializer()


class _ByName(CursorPages):
    ordering = ("name", "id")


class _OpenFirst(CursorPages):
    ordering = ("-since", "-id")


@extend_schema_view(
    list=extend_schema(description="The alert rules that you can see, by name."),
    retrieve=extend_schema(description="One rule, with its states that are not normal."),
    destroy=extend_schema(description="Delete a rule and its history."),
)
class AlertRuleViewSet(DeletableViewSet[AlertRule]):
    queries = {"list": None, "create": AboutTenantQuery}
    writes = Scope.MANAGE

    list_serializer_class = AlertRuleSerializer
    serializer_class = AlertRuleDetailSerializer
    pagination_class = _ByName
    queryset = AlertRule.objects.none()  # for the filters in the OpenAPI schema
    filter_backends = (EffectiveFilters,)
    filterset_class = NameAndTenant

    def get_queryset(self) -> QuerySet[AlertRule]:
        return selectors.visible_to(person(self.request))

    def get_object(self) -> AlertRule:
        return selectors.get(self.kwargs["uid"], person(self.request))

    @extend_schema(
        request={"application/json": OpenApiRequest(ALERT_RULE_SPEC)}, responses={201: SavedAlertRuleSerializer}
    )
    def create(self, request: Request) -> Response:
        """Create a rule about the platform (operators and platform admins) or about a tenant (its admins)."""
        tenant = _tenant(self.query.get("tenant", ""), request)
        services.require_right(tenant, person(request))
        document: Any = request.data
        spec = AlertRuleSpec.parse(document)
        rule, secret = services.create(spec=spec, tenant=tenant, user=person(request), now=clock.now())
        return self._saved(rule, secret, 201)

    @extend_schema(request={"application/json": OpenApiRequest(ALERT_RULE_CHANGE)}, responses=SavedAlertRuleSerializer)
    def partial_update(self, request: Request, uid: UUID) -> Response:  # noqa: ARG002
        """Change the given fields. From then on the rule acts with your rights."""
        document: Any = request.data
        rule = self.get_object()
        services.require_right(rule.tenant, person(request))
        return self._saved(*services.change(rule, document, user=person(request), now=clock.now()), 200)

    def perform_destroy(self, rule: AlertRule) -> None:
        services.delete(rule, user=person(self.request), now=clock.now())

    def _saved(self, rule: AlertRule, secret: str, status: int) -> Response:
        context = self.get_serializer_context()
        return respond(SavedAlertRuleSerializer({"rule": rule, "webhook_secret": secret}, context=context), status)


class AlertRuleSilenceView(ApiView):
    writes = Scope.MANAGE

    @extend_schema(request=SilenceSerializer, responses=AlertRuleSerializer)
    def post(self, request: Request, uid: UUID) -> Response:
        """Notify nobody and do nothing for some hours. States are still recorded."""
        rule, now = selectors.get(uid, person(request)), clock.now()
        services.require_right(rule.tenant, person(request))
        values = validated(SilenceSerializer(data=request.data))
        until = now + timedelta(hours=values["hours"])
        rule = services.silence(rule, until=until, reason=values["reason"], user=person(request), now=now)
        return respond(AlertRuleSerializer(rule))

    @extend_schema(responses={204: None})
    def delete(self, request: Request, uid: UUID) -> Response:
        """End the silence."""
        rule = selectors.get(uid, person(request))
        services.silence(rule, until=None, reason="", user=person(request), now=clock.now())
        return Response(status=204)


class AlertActionVetoView(ApiView):
    writes = Scope.MANAGE

    @extend_schema(request=None, responses=AlertActionSerializer)
    def post(self, request: Request, uid: UUID) -> Response:
        """Forbid a change that a rule has announced."""
        action = selectors.action(uid, person(request))
        services.veto(action, user=person(request), now=clock.now())
        return respond(AlertActionSerializer(selectors.action(uid, person(request))))


class AlertRuleHistoryView(ApiView):
    @extend_schema(responses=AlertHistorySerializer)
    def get(self, request: Request, uid: UUID) -> Response:
        """The newest changes of states, and the newest actions: at most 200 of each."""
        rule = selectors.get(uid, person(request))
        found = {"changes": selectors.history(rule)[:_MOST], "actions": selectors.actions(rule)[:_MOST]}
        return respond(AlertHistorySerializer(found))


class AlertRulePreviewView(ApiView):
    queries = {"post": AboutTenantQuery}
    writes = Scope.MANAGE

    @extend_schema(request={"application/json": OpenApiRequest(ALERT_RULE_SPEC)}, responses=RulePreviewSerializer)
    def post(self, request: Request) -> Response:
        """What a rule would say now, and in the last 7 days where the log has the values. Saves nothing."""
        tenant, now = _tenant(self.query.get("tenant", ""), request), clock.now()
        services.require_right(tenant, person(request))
        document: Any = request.data
        spec = AlertRuleSpec.parse(document)
        checks.require(spec, tenant, person(request))
        present, past = preview.now_of(spec, tenant, now=now), preview.past_of(spec, tenant, now=now)
        found = {"values": present.values, "count": present.count, "breaches": present.breaches}
        return respond(RulePreviewSerializer({**found, "no_data": present.no_data, "past": past}))


@extend_schema_view(
    get=extend_schema(
        description="What fires now, is near it, or has no data, of the rules that you can see; the newest first."
    )
)
class AlertsView(ApiView, ListAPIView[Alert]):
    queries = {"get": PageQuery}
    serializer_class = AlertSerializer
    pagination_class = _OpenFirst

    def get_queryset(self) -> QuerySet[Alert]:
        return selectors.alerts(person(self.request)).order_by()


class AlertMeasuresView(ApiView):
    queries = {"get": ArrayQuery}

    @extend_schema(responses=AlertMeasureSerializer(many=True))
    def get(self, request: Request) -> Response:
        """What rules can measure."""
        is_platform = selectors.may_set(person(request), None)
        return array(request, measures.offered(for_tenant=not is_platform), AlertMeasureSerializer)


def _tenant(slug: str, request: Request) -> Tenant | None:
    return tenancy.get(slug, person(request)) if slug else None
