"""Endpoint of the overview of operations."""

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from hekla.api.v1.measured_periods import PeriodReportSerializer
from hekla.api.views import ApiView, person
from hekla.apps.measures.selectors import MeasuresQuery, Period
from hekla.apps.reports.overview import UNITS, OverviewFigure, overview
from hekla.lib import clock


class OverviewQuerySerializer(serializers.Serializer[Any]):
    period = serializers.ChoiceField([one.value for one in Period], default=Period.DAY.value)
    until = serializers.DateTimeField(required=False, help_text="end of the period; default: now")
    cluster = serializers.CharField(
        required=False, max_length=200, help_text="name; default: all that are not simulated"
    )


class OverviewValueSerializer(serializers.Serializer[Any]):
    """`unit`: percent, gpu_hours, seconds or count. Null: nothing is known, for example no job started."""

    name = serializers.ChoiceField([one.value for one in OverviewFigure])
    unit = serializers.CharField()
    value = serializers.FloatField(allow_null=True)
    before = serializers.FloatField(allow_null=True, help_text="of the period before")


class OverviewSerializer(PeriodReportSerializer):
    measured_until = serializers.DateTimeField(allow_null=True)
    figures = OverviewValueSerializer(many=True)


class OverviewView(ApiView):
    queries = {"get": OverviewQuerySerializer}

    @extend_schema(responses=OverviewSerializer)
    def get(self, request: Request) -> Response:
        """The figures to look at first: use, waste, waiting times, results, starved queues, alerts and nodes.

        `waiting`, `alerts` and `nodes_down` are of this moment: they are left out of periods in the past.
        """
        query = MeasuresQuery(**{**self.query, "period": Period(self.query["period"])})
        found = overview(person(request), query, now=clock.now())
        report = found.gpu_time
        return Response(
            {
                "period": query.period.value,
                "begin": report.begin,
                "end": report.end,
                "step_seconds": int(query.step.total_seconds()),
                "is_simulated": report.is_simulated,
                "measured_until": report.measured_until,
                "figures": [
                    {"name": what.value, "unit": UNITS.get(what, "count"), "value": one.value, "before": one.before}
                    for what, one in found.figures.items()
                ],
            }
        )
