"""Endpoint of what queues deserved and held over time: the figures of the page of operations."""

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from hekla.api.v1.measured_periods import PeriodQuerySerializer, PeriodReportSerializer
from hekla.api.views import ApiView, person
from hekla.apps.measures import queue_selectors
from hekla.apps.measures.queue_selectors import QueueTime, QueueUse, QueueUseQuery, StarvedQueue
from hekla.apps.measures.selectors import Period
from hekla.lib import clock

_MICROSECONDS = 1_000_000


class QueueUseQuerySerializer(PeriodQuerySerializer):
    resource = serializers.CharField(required=False, max_length=253, help_text="for example nvidia.com/gpu")


class QueueTimeSerializer(serializers.Serializer[Any]):
    """GPU seconds. `waiting`: what pending jobs lacked, over the time that they lacked it."""

    deserved = serializers.FloatField()
    allocated = serializers.FloatField()
    waiting = serializers.FloatField()
    borrowed = serializers.FloatField(help_text="allocated beyond what the queue deserved")
    lent = serializers.FloatField(help_text="deserved, not allocated, and borrowed by others")


class QueueUseRowSerializer(serializers.Serializer[Any]):
    name = serializers.CharField()
    cluster = serializers.CharField()
    is_inner = serializers.BooleanField(help_text="the amounts contain those of its child queues")
    gpu_seconds = QueueTimeSerializer()
    gpu_seconds_before = QueueTimeSerializer(help_text="of the period before")
    points = QueueTimeSerializer(many=True, help_text="one for each of `times`")


class StarvedQueueSerializer(serializers.Serializer[Any]):
    """A queue with pending jobs that was below what it deserved while another one was above."""

    queue = serializers.CharField()
    other = serializers.CharField(help_text="empty for queues that you cannot see")
    resource = serializers.CharField()
    seconds = serializers.FloatField()
    first_at = serializers.DateTimeField()
    last_at = serializers.DateTimeField()


class QueueUseSerializer(PeriodReportSerializer):
    measured_until = serializers.DateTimeField(allow_null=True)
    times = serializers.ListField(child=serializers.DateTimeField(), help_text="the begin of each step")
    queues = QueueUseRowSerializer(many=True)
    starved = StarvedQueueSerializer(many=True)


class QueueUseView(ApiView):
    queries = {"get": QueueUseQuerySerializer}

    @extend_schema(responses=QueueUseSerializer)
    def get(self, request: Request) -> Response:
        """The GPUs that the queues you can see deserved, held, waited for, borrowed and lent in a period."""
        query = QueueUseQuery(**{**self.query, "period": Period(self.query["period"])})
        report = queue_selectors.queue_use(person(request), query, now=clock.now())
        return Response(
            {
                "period": report.query.period.value,
                "begin": report.begin,
                "end": report.end,
                "step_seconds": int(report.query.step.total_seconds()),
                "measured_until": report.measured_until,
                "is_simulated": report.is_simulated,
                "times": report.times,
                "queues": [_row(one) for one in report.queues],
                "starved": [_pair(one) for one in report.starved],
            }
        )


def _row(one: QueueUse) -> dict[str, Any]:
    return {
        "name": one.name,
        "cluster": one.cluster,
        "is_inner": one.is_inner,
        "gpu_seconds": _seconds(one.total),
        "gpu_seconds_before": _seconds(one.before),
        "points": [_seconds(point) for point in one.points],
    }


def _pair(pair: StarvedQueue) -> dict[str, Any]:
    return {
        "queue": pair.queue,
        "other": pair.other,
        "resource": pair.resource,
        "seconds": pair.milliseconds / 1000,
        "first_at": pair.first_at,
        "last_at": pair.last_at,
    }


def _seconds(time: QueueTime) -> dict[str, float]:
    return {name: amount / _MICROSECONDS for name, amount in time._asdict().items()}
