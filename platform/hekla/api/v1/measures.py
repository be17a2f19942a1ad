"""Endpoint of GPU time: the figures of the dashboards."""

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from hekla.api.v1.measured_periods import PeriodQuerySerializer, PeriodReportSerializer
from hekla.api.views import ApiView, person
from hekla.apps.measures import selectors
from hekla.apps.measures.selectors import Amounts, GpuTimeQuery, GroupBy, Period
from hekla.lib import clock

_MICROSECONDS = 1_000_000


class GpuTimeQuerySerializer(PeriodQuerySerializer):
    tenant = serializers.CharField(required=False, max_length=200, help_text="short name")
    model = serializers.CharField(required=False, max_length=253, help_text="model of the GPUs")
    by = serializers.ChoiceField([one.value for one in GroupBy], default=GroupBy.TENANT.value, help_text="parts")


class GpuTimePointSerializer(serializers.Serializer[Any]):
    at = serializers.DateTimeField()
    gpu_seconds = serializers.DictField(child=serializers.FloatField())


class GpuTimePartSerializer(serializers.Serializer[Any]):
    name = serializers.CharField()
    key = serializers.CharField(help_text="name for the filter; empty if it cannot be filtered")
    gpu_seconds = serializers.DictField(child=serializers.FloatField())


class GpuTimeSerializer(PeriodReportSerializer):
    """`gpu_seconds`: by class. `is_capacity`: the classes add up to the capacity; else they are what pods held."""

    measured_until = serializers.DateTimeField(allow_null=True)
    is_capacity = serializers.BooleanField()
    gpu_seconds = serializers.DictField(child=serializers.FloatField())
    gpu_seconds_before = serializers.DictField(child=serializers.FloatField(), help_text="of the period before")
    points = GpuTimePointSerializer(many=True)
    parts = GpuTimePartSerializer(many=True)


class GpuTimeView(ApiView):
    queries = {"get": GpuTimeQuerySerializer}

    @extend_schema(responses=GpuTimeSerializer)
    def get(self, request: Request) -> Response:
        """What became of the GPU time. People who see everything get all of the capacity, others their tenants' part.

        Classes: useful, idle, unmeasured, gang (held before the gang ran), preempted, retried, failed; and of the
        capacity that no pod held: free, drained, down.
        """
        query = {**self.query, "period": Period(self.query["period"]), "by": GroupBy(self.query["by"])}
        report = selectors.gpu_time(person(request), GpuTimeQuery(**query), now=clock.now())
        return Response(
            {
                "period": report.query.period.value,
                "begin": report.begin,
                "end": report.end,
                "step_seconds": int(report.query.step.total_seconds()),
                "measured_until": report.measured_until,
                "is_capacity": report.is_capacity,
                "is_simulated": report.is_simulated,
                "gpu_seconds": _seconds(report.totals),
                "gpu_seconds_before": _seconds(report.before),
                "points": [{"at": point.at, "gpu_seconds": _seconds(point.amounts)} for point in report.points],
                "parts": [
                    {"name": part.name, "key": part.key, "gpu_seconds": _seconds(part.amounts)} for part in report.parts
                ],
            }
        )


def _seconds(amounts: Amounts) -> dict[str, float]:
    return {what.value: amount / _MICROSECONDS for what, amount in amounts.items()}
