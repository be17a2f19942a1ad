"""Endpoint of the state of the console itself."""

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from hekla.api.views import ApiView, person, respond
from hekla.apps.system.report import system_report
from hekla.lib import clock


class MessageQueueSerializer(serializers.Serializer[Any]):
    name = serializers.CharField()
    length = serializers.IntegerField()
    oldest_seconds = serializers.FloatField(allow_null=True, help_text="age of the next message; null: unknown")


class FailedTaskSerializer(serializers.Serializer[Any]):
    at = serializers.DateTimeField()
    task = serializers.CharField()
    error = serializers.CharField()


class BrokerStateSerializer(serializers.Serializer[Any]):
    """Valkey, and the messages that wait there."""

    problem = serializers.CharField(help_text="why nothing is known; else empty")
    version = serializers.CharField()
    memory_bytes = serializers.IntegerField()
    clients = serializers.IntegerField()
    queues = MessageQueueSerializer(many=True)
    unacknowledged = serializers.IntegerField(help_text="messages that workers hold")
    failures = FailedTaskSerializer(many=True, help_text="tasks that failed in the last days, newest first")


class TableSizeSerializer(serializers.Serializer[Any]):
    name = serializers.CharField()
    size_bytes = serializers.IntegerField(help_text="with indexes")
    rows = serializers.IntegerField(help_text="as last estimated by PostgreSQL")
    partitions = serializers.IntegerField(help_text="0 for a table without")


class SlowStatementSerializer(serializers.Serializer[Any]):
    text = serializers.CharField()
    calls = serializers.IntegerField()
    mean_ms = serializers.FloatField()
    total_ms = serializers.FloatField()
    rows = serializers.IntegerField()


class DatabaseStateSerializer(serializers.Serializer[Any]):
    """PostgreSQL."""

    version = serializers.CharField()
    size_bytes = serializers.IntegerField()
    connections = serializers.IntegerField()
    max_connections = serializers.IntegerField()
    longest_seconds = serializers.FloatField(allow_null=True, help_text="of the oldest transaction at work")
    tables = TableSizeSerializer(many=True, help_text="the biggest ones")
    statements = SlowStatementSerializer(
        many=True, allow_null=True, help_text="the slowest on average; null without pg_stat_statements"
    )


class ControllerStateSerializer(serializers.Serializer[Any]):
    """The controller of a cluster, by its lease."""

    cluster = serializers.CharField()
    kind = serializers.CharField()
    is_paused = serializers.BooleanField()
    holder = serializers.CharField(help_text="process that holds the lease; empty: none")
    epoch = serializers.IntegerField()
    silent_seconds = serializers.FloatField(help_text="since the lease was last renewed")
    is_silent = serializers.BooleanField()
    fault = serializers.CharField(help_text="its last unexpected error; empty: none")
    version = serializers.CharField(help_text="of the cluster; empty: unknown")
    problem = serializers.CharField(help_text="code of the last health check; empty: reachable or not checked")


class LogReaderSerializer(serializers.Serializer[Any]):
    name = serializers.CharField()
    number = serializers.IntegerField(allow_null=True, help_text="last event that was read; null: none yet")
    behind = serializers.IntegerField(help_text="events that were not read yet")
    behind_seconds = serializers.FloatField(help_text="age of the first of these")


class OutboxStateSerializer(serializers.Serializer[Any]):
    kind = serializers.CharField()
    waiting = serializers.IntegerField()
    overdue = serializers.IntegerField()
    oldest_at = serializers.DateTimeField(allow_null=True)
    abandoned = serializers.IntegerField(help_text="given up in the last day")
    error = serializers.CharField(help_text="the newest one; empty: none")


class SystemReportSerializer(serializers.Serializer[Any]):
    """The state of the console at an instant."""

    at = serializers.DateTimeField()
    hekla = serializers.CharField(help_text="version")
    python = serializers.CharField(help_text="version")
    django = serializers.CharField(help_text="version")
    broker = BrokerStateSerializer()
    database = DatabaseStateSerializer()
    controllers = ControllerStateSerializer(many=True)
    readers = LogReaderSerializer(many=True)
    last_event = serializers.IntegerField(help_text="newest number of the event log")
    oldest_event_at = serializers.DateTimeField(allow_null=True)
    outboxes = OutboxStateSerializer(many=True)


class SystemView(ApiView):
    @extend_schema(responses=SystemReportSerializer)
    def get(self, request: Request) -> Response:
        """Messages, leases, readers of the event log, versions, database, outboxes and failed tasks (operators)."""
        return respond(SystemReportSerializer(system_report(person(request), now=clock.now())))
