"""Endpoints of the idle rule: the activity of sessions and jobs, the wish to keep them, and the rules."""

from typing import Any
from uuid import UUID

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from hekla.api.documents import validated
from hekla.api.v1.sessions import find_session
from hekla.api.views import ApiView, person, respond
from hekla.apps.accounts.scopes import Scope
from hekla.apps.idleness import job_selectors, selectors, services
from hekla.apps.idleness import job_services as idle_jobs
from hekla.apps.idleness.job_selectors import JobActivity
from hekla.apps.idleness.models import IdlePolicy
from hekla.apps.idleness.selectors import SessionActivity
from hekla.apps.jobs import selectors as jobs
from hekla.apps.jobs import services as job_services
from hekla.apps.tenancy import selectors as tenancy
from hekla.apps.tenancy.models import Tenant
from hekla.domain.idleness import MINUTE, IdleStep, KeepCause, Signal
from hekla.lib import clock

_SIGNALS = [signal.value for signal in Signal]


class SignalSerializer(serializers.Serializer[Any]):
    """A signal of a session against its limit."""

    signal = serializers.ChoiceField(_SIGNALS)
    limit = serializers.FloatField(
        allow_null=True, help_text="from which amount a minute counts as active; null: it does not count"
    )
    most = serializers.FloatField(allow_null=True, help_text="highest amount while idle; null: not known")
    active_at = serializers.DateTimeField(allow_null=True, help_text="end of the last active minute")
    unknown_at = serializers.DateTimeField(allow_null=True, help_text="end of the last minute without this signal")


class ActivitySerializer(serializers.Serializer[Any]):
    """What keeps a session or a job, and what the idle rule does next. Without a rule, most fields are null."""

    has_rule = serializers.BooleanField()
    idle_minutes = serializers.IntegerField(allow_null=True, help_text="after so long without activity it is warned")
    grace_minutes = serializers.IntegerField(allow_null=True, help_text="from the warning until the end")
    is_chosen = serializers.BooleanField(help_text="the job itself chose one of these times")
    step = serializers.ChoiceField(
        [step.value for step in IdleStep],
        allow_null=True,
        help_text="keep; warn: it is warned now; wait: it has been warned; end: it ends now",
    )
    idle_since = serializers.DateTimeField(allow_null=True)
    next_at = serializers.DateTimeField(
        allow_null=True, help_text="of the warning, or of the end after a warning, if nothing happens"
    )
    cause = serializers.ChoiceField(
        [cause.value for cause in KeepCause],
        allow_null=True,
        help_text="why its idle time began no earlier: a signal, an unknown signal, a gap in the record, or its start",
    )
    signal = serializers.ChoiceField(_SIGNALS, allow_null=True)
    keep_until = serializers.DateTimeField(allow_null=True)
    keep_reason = serializers.CharField()
    signals = SignalSerializer(many=True)


class KeepRequestSerializer(serializers.Serializer[Any]):
    """For how long, and why."""

    hours = serializers.IntegerField(min_value=1, max_value=services.MOST_HOURS)
    reason = serializers.CharField(max_length=services.MAX_REASON)


class IdleRuleSerializer(serializers.ModelSerializer[IdlePolicy]):
    """When idle sessions end, and jobs with idle GPUs are aborted. A signal without a limit does not count."""

    class Meta:
        model = IdlePolicy
        fields = [
            *("ends_sessions", "idle_minutes", "grace_minutes", "cpu_percent", "gpu_percent", "network_kib"),
            "gpu_job_minutes",
        ]


class SessionActivityView(ApiView):
    @extend_schema(responses=ActivitySerializer)
    def get(self, request: Request, uid: UUID, session: UUID) -> Response:
        """What keeps a session, each signal against its limit, and when it would be warned or end."""
        found = find_session(request, uid, session)
        return respond(ActivitySerializer(_facts(selectors.activity_of(found, now=clock.now()))))


class SessionKeepView(ApiView):
    writes = Scope.JOBS

    @extend_schema(request=KeepRequestSerializer, responses=ActivitySerializer)
    def post(self, request: Request, uid: UUID, session: UUID) -> Response:
        """Keep a session for some hours, also if it is idle. Once for each session."""
        found = find_session(request, uid, session)
        values = validated(KeepRequestSerializer(data=request.data))
        services.keep(found, **values, user=person(request), now=clock.now())
        return respond(ActivitySerializer(_facts(selectors.activity_of(found, now=clock.now()))))


class JobGpuActivityView(ApiView):
    @extend_schema(responses=ActivitySerializer)
    def get(self, request: Request, uid: UUID) -> Response:
        """What keeps a job that holds GPUs, and when it would be warned or aborted. No step: no rule, or no GPUs."""
        found = jobs.get(uid, person(request))
        return respond(ActivitySerializer(_facts(job_selectors.activity_of(found, now=clock.now()))))


class JobKeepView(ApiView):
    writes = Scope.JOBS

    @extend_schema(request=KeepRequestSerializer, responses=ActivitySerializer)
    def post(self, request: Request, uid: UUID) -> Response:
        """Keep a job for some hours, also if its GPUs are idle. Once for each job."""
        found = jobs.get(uid, person(request))
        job_services.require_right(found, person(request))
        values = validated(KeepRequestSerializer(data=request.data))
        idle_jobs.keep(found, **values, user=person(request), now=clock.now())
        return respond(ActivitySerializer(_facts(job_selectors.activity_of(found, now=clock.now()))))


class IdleRuleView(ApiView):
    writes = Scope.MANAGE

    @extend_schema(responses=IdleRuleSerializer)
    def get(self, request: Request) -> Response:  # noqa: ARG002
        """The idle rule for the sessions of all tenants."""
        return respond(IdleRuleSerializer(selectors.policy_of(None)))

    @extend_schema(request=IdleRuleSerializer, responses=IdleRuleSerializer)
    def patch(self, request: Request) -> Response:
        """Change the idle rule for all tenants (operators and platform admins)."""
        return _change(request, None)


class TenantIdleRuleView(ApiView):
    writes = Scope.MANAGE

    @extend_schema(responses=IdleRuleSerializer)
    def get(self, request: Request, slug: str) -> Response:
        """The idle rule of a tenant. The rule for all tenants applies too: of both, the stricter value counts."""
        return respond(IdleRuleSerializer(selectors.policy_of(tenancy.get(slug, person(request)))))

    @extend_schema(request=IdleRuleSerializer, responses=IdleRuleSerializer)
    def patch(self, request: Request, slug: str) -> Response:
        """Change the idle rule of a tenant (tenant admins, operators and platform admins)."""
        return _change(request, tenancy.get(slug, person(request)))


def _change(request: Request, tenant: Tenant | None) -> Response:
    services.require_right(tenant, person(request))
    values = validated(IdleRuleSerializer(data=request.data, partial=True))
    services.set_rule(tenant, values, user=person(request), now=clock.now())
    return respond(IdleRuleSerializer(selectors.policy_of(tenant)))


def _facts(found: SessionActivity | JobActivity) -> dict[str, Any]:
    verdict, rule = found.verdict, found.rule
    return {
        "has_rule": rule is not None,
        "idle_minutes": rule.idle // MINUTE if rule else None,
        "grace_minutes": rule.grace // MINUTE if rule else None,
        "is_chosen": rule is not None and rule.is_chosen,
        "step": verdict.step if verdict else None,
        "idle_since": verdict.idle_since if verdict else None,
        "next_at": verdict.next_at if verdict else None,
        "cause": verdict.cause if verdict else None,
        "signal": verdict.signal if verdict else None,
        "keep_until": found.keep_until,
        "keep_reason": found.state.keep_reason if found.state else "",
        "signals": verdict.evidence if verdict else (),
    }
