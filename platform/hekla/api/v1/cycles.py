"""Endpoints of the scheduler's decisions: recorded cycles, what each did, and how it judged a job. For operators."""

from typing import Any

from django.http import StreamingHttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from hekla.api.arrays import ArrayQuery, array
from hekla.api.renderers import ApiRenderer
from hekla.api.v1.files import FileRenderer
from hekla.api.views import ApiView, person, respond
from hekla.apps.clusters import selectors as clusters
from hekla.apps.cycle_records import selectors
from hekla.apps.cycle_records.models import CycleRecord
from hekla.apps.job_history import labels
from hekla.scheduling import cycle_records
from hekla.simulation import cycle_report


class CycleSerializer(serializers.Serializer[Any]):
    """A scheduling cycle that decided something."""

    id = serializers.IntegerField()
    at = serializers.DateTimeField()
    trigger = serializers.ChoiceField(CycleRecord.Trigger.values, help_text="why it ran")
    limit = serializers.ChoiceField(
        ["", *CycleRecord.Limit.values], help_text="which decisions were not applied; usually empty"
    )
    omission = serializers.ChoiceField(
        ["", *CycleRecord.Omission.values], help_text="why it cannot be replayed; usually empty"
    )
    engine_ms = serializers.FloatField(help_text="how long the engine took, in milliseconds")
    recording_ms = serializers.FloatField(help_text="CPU that its record took, in milliseconds")
    size = serializers.IntegerField(help_text="bytes of its record")
    jobs = serializers.IntegerField(help_text="jobs with something to decide")
    pods = serializers.IntegerField(help_text="pods of all jobs")
    admissions = serializers.IntegerField()
    binds = serializers.IntegerField()
    evictions = serializers.IntegerField()
    pipelined = serializers.IntegerField(help_text="pods that wait for resources that are being released")
    refusals = serializers.IntegerField(help_text="jobs that wait for a new reason")


class OutcomeDifferenceSerializer(serializers.Serializer[Any]):
    """A decision that is only in the record, or only in the replay."""

    part = serializers.CharField()
    decision = serializers.CharField()
    is_recorded = serializers.BooleanField()


class CycleJobSerializer(serializers.Serializer[Any]):
    """A job as it was in the cycle."""

    uid = serializers.CharField(help_text="its number in the engine")
    name = serializers.CharField()
    queue = serializers.CharField()
    priority = serializers.IntegerField()
    pods = serializers.IntegerField()
    pending = serializers.IntegerField(help_text="pods without a node before the cycle")


class JobStepSerializer(serializers.Serializer[Any]):
    """What an action did to a job, in pods."""

    job = CycleJobSerializer()
    is_admitted = serializers.BooleanField()
    tried = serializers.IntegerField()
    placed = serializers.IntegerField()
    promised = serializers.IntegerField()
    evicted = serializers.IntegerField()


class ActionReportSerializer(serializers.Serializer[Any]):
    """An action of the policy, with the jobs that it considered."""

    name = serializers.CharField()
    steps = JobStepSerializer(many=True)
    hidden = serializers.IntegerField(help_text="further jobs")


class WaitingJobSerializer(serializers.Serializer[Any]):
    """A job that waits after the cycle."""

    job = CycleJobSerializer()
    reasons = serializers.SerializerMethodField(help_text="sentences in the language of the request")

    def get_reasons(self, one: cycle_report.WaitingJob) -> list[str]:
        """The reasons as sentences."""
        return [labels.reason(reason) for reason in one.reasons]


class CycleReportSerializer(serializers.Serializer[Any]):
    """A replayed cycle. `is_equal`: the engine decided what was recorded."""

    is_equal = serializers.BooleanField(source="replay.is_equal")
    differences = OutcomeDifferenceSerializer(source="replay.differences", many=True)
    actions = ActionReportSerializer(many=True)
    waiting = WaitingJobSerializer(many=True)
    hidden = serializers.IntegerField(help_text="further waiting jobs")


class NodeVerdictSerializer(serializers.Serializer[Any]):
    """How a node was judged for a pod."""

    node = serializers.CharField()
    total = serializers.FloatField(allow_null=True, help_text="null: it was no candidate")
    scores = serializers.DictField(child=serializers.FloatField(), help_text="by plugin; they add up to the total")
    vetoes = serializers.ListField(
        child=serializers.ListField(child=serializers.CharField()), help_text="plugin, reason"
    )
    short = serializers.ListField(child=serializers.CharField(), help_text="resources of which it has too little")
    is_chosen = serializers.BooleanField()


class PodExaminationSerializer(serializers.Serializer[Any]):
    """The judgement of the nodes for one pod."""

    action = serializers.CharField()
    pod = serializers.CharField()
    node_count = serializers.IntegerField()
    candidates = serializers.IntegerField()
    has_room_now = serializers.BooleanField()
    nodes = NodeVerdictSerializer(many=True)


class VictimVerdictSerializer(serializers.Serializer[Any]):
    """A pod that was considered as a victim."""

    action = serializers.CharField()
    victim = serializers.CharField()
    job = serializers.CharField()
    node = serializers.CharField()
    is_allowed = serializers.BooleanField()
    spared_by = serializers.CharField(help_text="the plugin that did not allow it; empty if none spoke")


class CycleJobReportSerializer(serializers.Serializer[Any]):
    """How a cycle judged a job."""

    job = CycleJobSerializer()
    is_equal = serializers.BooleanField(source="replay.is_equal")
    reasons = serializers.SerializerMethodField(help_text="why it waits")
    binds = serializers.DictField(child=serializers.CharField(), help_text="node by pod")
    promised = serializers.DictField(child=serializers.CharField(), help_text="node by pod")
    examinations = PodExaminationSerializer(many=True)
    victims = VictimVerdictSerializer(many=True)

    def get_reasons(self, one: cycle_report.CycleJobReport) -> list[str]:
        """The reasons as sentences."""
        return [labels.reason(reason) for reason in one.reasons]


class CyclesView(ApiView):
    queries = {"get": ArrayQuery}

    @extend_schema(responses=CycleSerializer(many=True))
    def get(self, request: Request, name: str) -> Response:
        """Cycles of a cluster that decided something, the newest first (operators and platform admins)."""
        return array(request, selectors.records(person(request), clusters.get(name)), CycleSerializer)


class CycleView(ApiView):
    @extend_schema(responses=CycleReportSerializer)
    def get(self, request: Request, record_id: int) -> Response:
        """What each action of a cycle did. The engine runs again on the record."""
        return respond(CycleReportSerializer(cycle_report.report_of(selectors.record(person(request), record_id))))


class CycleJobView(ApiView):
    @extend_schema(responses=CycleJobReportSerializer)
    def get(self, request: Request, record_id: int, job: int) -> Response:
        """How a cycle judged a job: nodes with scores and vetoes, and victims."""
        row = selectors.record(person(request), record_id)
        return respond(CycleJobReportSerializer(cycle_report.job_report_of(row, str(job))))


class CycleFileView(ApiView):
    renderer_classes = (ApiRenderer, FileRenderer)

    @extend_schema(responses={(200, "application/octet-stream"): OpenApiTypes.BINARY})
    def get(self, request: Request, record_id: int) -> StreamingHttpResponse:
        """The cycle as one JSON file, for `hekla decisions replay`."""
        return cycle_records.file_of(selectors.record(person(request), record_id))
