"""Endpoints of waiting times, throughput and failures of jobs: the figures of the dashboards."""

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from hekla.api.v1.measured_periods import PeriodQuerySerializer, PeriodReportSerializer
from hekla.api.views import ApiView, person
from hekla.apps.measures import job_reports
from hekla.apps.measures.job_reports import FailurePlace, JobFigures, JobGroupBy, JobsQuery, JobsReport
from hekla.apps.measures.selectors import Period
from hekla.domain.job_measures import QUANTILES, JobSize, MomentKind
from hekla.lib import clock

_COUNTED = [what for what in MomentKind if what is not MomentKind.WAITED]


class JobMeasuresQuerySerializer(PeriodQuerySerializer):
    tenant = serializers.CharField(required=False, max_length=200, help_text="short name")
    person = serializers.CharField(required=False, max_length=150, help_text="name of the owner")
    kind = serializers.CharField(required=False, max_length=32, help_text="kind of the jobs")
    size = serializers.ChoiceField([one.value for one in JobSize], required=False, help_text="GPUs of the whole job")
    model = serializers.CharField(required=False, max_length=253, help_text="model of the GPUs that the jobs held")
    by = serializers.ChoiceField([one.value for one in JobGroupBy], default=JobGroupBy.QUEUE.value, help_text="parts")


class WaitSerializer(serializers.Serializer[Any]):
    """Waiting times in seconds of the jobs that started; null without such jobs. At most 19 per cent too long."""

    p50 = serializers.FloatField(allow_null=True)
    p90 = serializers.FloatField(allow_null=True)
    p95 = serializers.FloatField(allow_null=True)
    p99 = serializers.FloatField(allow_null=True)
    mean = serializers.FloatField(allow_null=True)


class JobFiguresSerializer(serializers.Serializer[Any]):
    """`counts`: submitted, started, completed, failed, stopped, unstarted, preempted, retried."""

    counts = serializers.DictField(child=serializers.IntegerField())
    failed_by_cause = serializers.DictField(child=serializers.IntegerField())
    wait_seconds = WaitSerializer()
    waited_seconds_by_reason = serializers.DictField(child=serializers.FloatField(), help_text="all jobs together")


class JobsPointSerializer(JobFiguresSerializer):
    at = serializers.DateTimeField()


class JobsPartSerializer(JobFiguresSerializer):
    name = serializers.CharField()
    key = serializers.CharField(help_text="name for the filter; empty if it cannot be filtered")
    waiting = serializers.IntegerField(help_text="jobs that wait for their first start now")


class WaitingNowSerializer(serializers.Serializer[Any]):
    """The jobs that wait for their first start now, and how long they have waited so far. They are in no other figure
    of waiting times.
    """

    count = serializers.IntegerField()
    longest_seconds = serializers.FloatField()
    median_seconds = serializers.FloatField()
    reasons = serializers.DictField(child=serializers.IntegerField())


class _JobsReportSerializer(PeriodReportSerializer):
    counted_until = serializers.DateTimeField(allow_null=True)
    total = JobFiguresSerializer()
    before = JobFiguresSerializer(help_text="the period before")
    points = JobsPointSerializer(many=True)
    parts = JobsPartSerializer(many=True)


class JobWaitingSerializer(_JobsReportSerializer):
    """`waiting`: null if the period is past."""

    waiting = WaitingNowSerializer(allow_null=True)


class FailurePlaceSerializer(serializers.Serializer[Any]):
    name = serializers.CharField()
    failed = serializers.IntegerField()
    main_cause = serializers.CharField(help_text="the most frequent cause")


class JobFailuresSerializer(_JobsReportSerializer):
    """`nodes`, `images`, `exit_codes`: where most jobs failed, at most 20 of each."""

    nodes = FailurePlaceSerializer(many=True)
    images = FailurePlaceSerializer(many=True)
    exit_codes = FailurePlaceSerializer(many=True)


class JobWaitingView(ApiView):
    queries = {"get": JobMeasuresQuerySerializer}

    @extend_schema(responses=JobWaitingSerializer)
    def get(self, request: Request) -> Response:
        """How long jobs waited before they started, and how many started and ended, of the jobs of your tenants.

        A wait counts when the job starts.
        """
        report = job_reports.jobs_report(person(request), _query(self.query), now=clock.now())
        waiting = report.waiting
        facts = waiting and {
            "count": waiting.count,
            "longest_seconds": waiting.longest,
            "median_seconds": waiting.half,
            "reasons": dict(waiting.reasons),
        }
        return Response({**_report(report), "waiting": facts})


class JobFailuresView(ApiView):
    queries = {"get": JobMeasuresQuerySerializer}

    @extend_schema(responses=JobFailuresSerializer)
    def get(self, request: Request) -> Response:
        """How many jobs failed, why and where, of the jobs of your tenants.

        Causes: exit_code, memory, node (lost), pressure (evicted by the node), preempted (for good), image, timeout,
        start (could not be started), other.
        """
        user, query, now = person(request), _query(self.query), clock.now()
        report = job_reports.jobs_report(user, query, now=now)
        places = {f"{place}s": job_reports.failure_places(user, query, place, now=now) for place in FailurePlace}
        rows = {
            name: [{"name": where, "failed": count, "main_cause": cause} for where, count, cause in found]
            for name, found in places.items()
        }
        return Response({**_report(report), **rows})


def _query(query: dict[str, Any]) -> JobsQuery:
    return JobsQuery(**{**query, "period": Period(query["period"]), "by": JobGroupBy(query["by"])})


def _report(report: JobsReport) -> dict[str, Any]:
    return {
        "period": report.query.period.value,
        "begin": report.begin,
        "end": report.end,
        "step_seconds": int(report.query.step.total_seconds()),
        "counted_until": report.counted_until,
        "is_simulated": report.is_simulated,
        "total": _figures(report.total),
        "before": _figures(report.before),
        "points": [{"at": at, **_figures(figures)} for at, figures in report.points.items()],
        "parts": [
            {"name": part.name, "key": part.key, "waiting": part.waiting, **_figures(part.figures)}
            for part in report.parts
        ],
    }


def _figures(figures: JobFigures) -> dict[str, Any]:
    waits = {f"p{round(100 * part)}": figures.wait(part) for part in QUANTILES}
    return {
        "counts": {what.value: figures.count(what) for what in _COUNTED},
        "failed_by_cause": {cause.value: count for cause, count in figures.causes.items()},
        "wait_seconds": {**waits, "mean": figures.mean_wait},
        "waited_seconds_by_reason": {reason.value: waited for reason, waited in figures.reasons.items()},
    }
