"""Serializers. A job is sent and returned as the JobSpec document itself, which `domain.jobspec` validates."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, ClassVar

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from hekla.apps.accounts.models import ApiToken
from hekla.apps.accounts.scopes import USUAL, Scope
from hekla.apps.clusters.models import Environment, Node, NodeUsageRow
from hekla.apps.event_log.models import LoggedEvent
from hekla.apps.job_history import cluster_notices, endings, explanations, failures, history, prospects
from hekla.apps.jobs import selectors
from hekla.apps.jobs.clone import JobClone
from hekla.apps.jobs.facts import spec_of
from hekla.apps.jobs.models import Job, Placement, Pod
from hekla.apps.sentences import together
from hekla.apps.tenancy.models import MAX_RETENTION_DAYS, Tenant
from hekla.apps.usage.autoscaling import TaskScaling
from hekla.apps.usage.models import Sample
from hekla.domain.autoscaling import ScalingState
from hekla.domain.job_kinds import MAX_PRIORITY
from hekla.domain.policies import PARTIAL_ACTIONS, LifecycleAction
from hekla.domain.routing import Feasibility

_PERSON_ACTIONS = [action.value for action in LifecycleAction if action is not LifecycleAction.SYNC_JOB]
_LONGEST_TOKEN_DAYS = 366


class TenantSerializer(serializers.ModelSerializer[Tenant]):
    class Meta:
        model = Tenant
        fields = ["slug", "name", "description", "is_active"]


class RetentionSerializer(serializers.Serializer[Tenant]):
    """Retention of deleted jobs, in days. The service checks that history is kept at least as long as logs."""

    log_days = serializers.IntegerField(min_value=0, max_value=MAX_RETENTION_DAYS, required=False)
    history_days = serializers.IntegerField(min_value=1, max_value=MAX_RETENTION_DAYS, required=False)


class PersonSerializer(serializers.Serializer[Any]):
    username = serializers.CharField()
    name = serializers.CharField(source="display_name")
    platform_role = serializers.CharField()
    scopes = serializers.ListField(child=serializers.CharField(), help_text="scopes of the token; empty without one")
    tenants = TenantSerializer(many=True)


class RoleSerializer(serializers.Serializer[Any]):
    """`place`: tenant or platform. `permissions`: from the table that Hekla checks."""

    place = serializers.CharField()
    role = serializers.CharField()
    permissions = serializers.ListField(child=serializers.CharField())


class TokenSerializer(serializers.ModelSerializer[ApiToken]):
    class Meta:
        model = ApiToken
        fields = ["id", "name", "prefix", "scopes", "created_at", "expires_at", "last_used_at"]


class NewTokenSerializer(serializers.Serializer[Any]):
    name = serializers.CharField(max_length=80)
    days = serializers.IntegerField(min_value=1, max_value=_LONGEST_TOKEN_DAYS, default=90)
    scopes = serializers.MultipleChoiceField(
        choices=[scope.value for scope in Scope], default={scope.value for scope in USUAL}, allow_empty=False
    )
    current_password = serializers.CharField(max_length=4096, default="", write_only=True, trim_whitespace=False)


class IssuedTokenSerializer(serializers.Serializer[Any]):
    """The token. It is shown only once."""

    token = serializers.CharField()


class NodeCardSerializer(serializers.Serializer[dict[str, Any]]):
    """A card of a node."""

    resource = serializers.CharField(help_text="counts the card: jobs request it")
    index = serializers.IntegerField(help_text="among the cards of the resource")
    id = serializers.CharField(help_text="the driver's name for it; empty if unknown")
    model = serializers.CharField()
    memory_mib = serializers.IntegerField(help_text="0 if unknown")
    is_healthy = serializers.BooleanField()


class HeldCardSerializer(serializers.Serializer[dict[str, Any]]):
    """A card of a pod."""

    resource = serializers.CharField(help_text="counts the card: jobs request it")
    index = serializers.IntegerField(help_text="among the cards of the resource on the node")
    id = serializers.CharField(help_text="the driver's name for it; empty if unknown")
    model = serializers.CharField()
    memory_mib = serializers.IntegerField(help_text="of the whole card; 0 if unknown")
    part_mib = serializers.IntegerField(help_text="the part that the pod holds; 0: the whole card")


class HyperNodeLevelSerializer(serializers.Serializer[Any]):
    """A hypernode that holds a node, as the cluster's HyperNode objects say."""

    name = serializers.CharField()
    tier = serializers.IntegerField()
    tier_name = serializers.CharField()


class CardMetricsSerializer(serializers.Serializer[dict[str, Any]]):
    """What processes use of a card."""

    resource = serializers.CharField(help_text="counts the card: jobs request it")
    index = serializers.IntegerField(help_text="among the cards of the resource")
    busy = serializers.IntegerField(help_text="per cent of the time")
    memory_mib = serializers.IntegerField()


class NodeUsageSerializer(serializers.Serializer[NodeUsageRow]):
    """What all processes of a node use, the mean of the last minutes, in per cent of the whole node."""

    measured_at = serializers.DateTimeField(source="at")
    cpu = serializers.FloatField()
    memory = serializers.FloatField()
    cards = CardMetricsSerializer(many=True, help_text="at present; those that are measured")


class NodeSerializer(serializers.ModelSerializer[Any]):
    cluster = serializers.CharField(source="cluster.name")
    is_simulated = serializers.BooleanField(source="cluster.is_simulated")
    allocatable = serializers.DictField(child=serializers.CharField())
    used = serializers.DictField(child=serializers.CharField(), help_text="allocated to pods")
    labels = serializers.DictField(child=serializers.CharField())
    zone = serializers.CharField(help_text="from its labels; empty if it has none")
    region = serializers.CharField(help_text="from its labels; empty if it has none")
    taints = serializers.ListField(child=serializers.CharField(), help_text="as `key=value:Effect`")
    cards = NodeCardSerializer(many=True)
    hypernodes = HyperNodeLevelSerializer(many=True)
    numa = serializers.DictField(help_text="policies of the kubelet and CPUs of NUMA cells; empty if unknown")
    usage = NodeUsageSerializer(allow_null=True, help_text="null if it was not measured in the last five minutes")

    class Meta:
        model = Node
        fields = ["name", "cluster", "is_simulated", "is_ready", "is_cordoned", "message", "allocatable", "used"]
        fields += ["labels", "zone", "region", "taints", "cards", "hypernodes", "numa", "usage"]


class EnvironmentSerializer(serializers.ModelSerializer[Environment]):
    class Meta:
        model = Environment
        fields = ["name", "description", "requirements"]


class JobSerializer(serializers.ModelSerializer[Job]):
    """A job in a list."""

    tenant = serializers.CharField(source="tenant.slug")
    queue = serializers.CharField(source="queue.name")
    cluster = serializers.CharField(source="cluster.name")
    is_simulated = serializers.BooleanField(source="cluster.is_simulated")
    owner = serializers.CharField(source="owner.username")
    is_final = serializers.BooleanField()

    class Meta:
        model = Job
        fields = ["uid", "name", "tenant", "queue", "cluster", "is_simulated", "owner", "kind", "priority", "replicas"]
        fields += ["phase", "gang_phase", "is_final", "version", "revision", "retry_count", "reason", "message"]
        fields += ["submitted_at", "started_at", "deadline_at", "restart_at", "finished_at", "expires_at", "deleted_at"]


class PodSerializer(serializers.ModelSerializer[Pod]):
    cards = HeldCardSerializer(many=True)
    cpus = serializers.CharField(help_text="those that it has for itself, as 0-3,8; empty if none, or unknown")

    class Meta:
        model = Pod
        fields = ["task", "index", "attempt", "phase", "node", "cards", "cpus", "address", "reason", "message"]
        fields += ["exit_code", "created_at", "bound_at", "started_at", "finished_at"]


class AttemptSerializer(PodSerializer):
    """One attempt, with the meaning of its result."""

    exit_meaning = serializers.SerializerMethodField()
    cause = serializers.SerializerMethodField(help_text="reason of the failure, as a sentence; otherwise empty")
    advice = serializers.SerializerMethodField(help_text="what to try")

    class Meta(PodSerializer.Meta):
        fields = [*PodSerializer.Meta.fields, "exit_meaning", "cause", "advice"]

    def get_exit_meaning(self, pod: Pod) -> str:
        """The meaning of the exit code: a signal, out of memory, no such program."""
        return endings.exit_of(pod)

    def get_cause(self, pod: Pod) -> str:
        """The reason of the failure."""
        why = failures.explain(pod)
        return why.cause if why else ""

    def get_advice(self, pod: Pod) -> str:
        """Advice."""
        why = failures.explain(pod)
        return why.advice if why else ""


class SampleSerializer(serializers.Serializer[Any]):
    """Usage of an attempt up to a time. The difference of two samples is the usage between them."""

    at = serializers.DateTimeField()
    cpu_seconds = serializers.SerializerMethodField(help_text="since the start of the pod")
    memory_bytes = serializers.IntegerField()
    gpus_busy = serializers.SerializerMethodField(help_text="number of busy GPUs; null without GPUs")
    gpu_memory_bytes = serializers.IntegerField(allow_null=True)
    span_seconds = serializers.IntegerField(help_text="duration of the sample")

    def get_cpu_seconds(self, sample: Sample) -> float:
        """CPU time of all its processes."""
        return sample.cpu_ms / 1000

    def get_gpus_busy(self, sample: Sample) -> float | None:
        """Average number of busy GPUs, for example 1.5 of 2."""
        return None if sample.gpu_thousandths is None else sample.gpu_thousandths / 1000


class TaskScalingSerializer(serializers.Serializer[TaskScaling]):
    """A task with autoscaling."""

    task = serializers.CharField(source="task.name")
    replicas = serializers.IntegerField(source="task.replicas")
    min_replicas = serializers.IntegerField(source="least")
    max_replicas = serializers.IntegerField(source="rule.max_replicas")
    gpu_utilization_target = serializers.IntegerField(source="rule.gpu_utilization", help_text="in percent")
    gpu_utilization = serializers.FloatField(
        source="recommendation.utilization", allow_null=True, help_text="of the last minute; null without figures"
    )
    scaling_state = serializers.ChoiceField([state.value for state in ScalingState], source="recommendation.state")
    desired_replicas = serializers.IntegerField(source="recommendation.replicas")
    sentence = serializers.CharField(help_text="the utilization, and why the replicas change or stay")


class HitSerializer(serializers.Serializer[Any]):
    """A matching line: its number, its first byte, and the text around the match."""

    line = serializers.IntegerField()
    offset = serializers.IntegerField()
    text = serializers.CharField()


class FoundSerializer(serializers.Serializer[Any]):
    """`complete`: the search reached the end of the log. If not, continue at `next_offset` and `next_line`."""

    hits = HitSerializer(many=True)
    next_offset = serializers.IntegerField()
    next_line = serializers.IntegerField()
    complete = serializers.BooleanField()


class ProspectSerializer(serializers.Serializer[dict[str, Any]]):
    """The result of one cluster for a job."""

    cluster = serializers.CharField()
    queue = serializers.CharField()
    chance = serializers.ChoiceField([chance.value for chance in Feasibility])
    sentence = serializers.CharField()
    evicts = serializers.IntegerField(help_text="number of pods that would be evicted")
    earliest_at = serializers.DateTimeField(allow_null=True, help_text="null: unknown")
    latest_at = serializers.DateTimeField(allow_null=True)
    load = serializers.FloatField(help_text="allocated part of the requested resources in the cluster; 1: all")


class PlacementSerializer(serializers.Serializer[dict[str, Any]]):
    """The cluster that a federated queue chose for a job, and the reasons."""

    federated_queue = serializers.CharField(allow_null=True, help_text="null: the federated queue is deleted")
    at = serializers.DateTimeField()
    moves = serializers.IntegerField(help_text="number of moves to another cluster while pending")
    candidates = ProspectSerializer(many=True, help_text="best first")


def placement_of(found: Placement) -> dict[str, Any]:
    """The fields of PlacementSerializer."""
    federated_queue = found.federated_queue.name if found.federated_queue else None
    return {
        "federated_queue": federated_queue,
        "at": found.at,
        "moves": found.moves,
        "candidates": pending_changes(found.candidates, found.at),
    }


def pending_changes(found: Sequence[dict[str, Any]], at: datetime) -> list[dict[str, Any]]:
    """The candidates of a placement, with parsed times and a sentence as of `at`."""
    times = ("earliest_at", "latest_at")
    moments = [{name: one[name] and datetime.fromisoformat(one[name]) for name in times} for one in found]
    return [{**one, **when, "sentence": prospects.sentence(one, at)} for one, when in zip(found, moments, strict=True)]


class JobDetailSerializer(JobSerializer):
    """A job with its spec, its pending reason, and the last attempt of each replica.

    With `is_new` in the context, the job was just submitted: it has no pods, and no placement if it names its queue.
    """

    logs_until = serializers.DateTimeField(
        allow_null=True, help_text="of a deleted job: its logs are kept until then; null: already deleted"
    )
    history_until = serializers.DateTimeField(
        allow_null=True, help_text="of a deleted job: its history is kept until then"
    )
    spec = serializers.JSONField()
    waiting = serializers.SerializerMethodField()
    notice = serializers.SerializerMethodField(
        help_text="what is wrong with the job's cluster: a silent controller, or nodes that are not ready"
    )
    pods = serializers.SerializerMethodField()
    placement = serializers.SerializerMethodField(help_text="null: submitted to a queue directly")

    class Meta(JobSerializer.Meta):
        fields = [*JobSerializer.Meta.fields, "cleaned_at", "logs_until", "history_until", "spec", "waiting", "pods"]
        fields += ["placement", "notice"]

    def get_waiting(self, job: Job) -> list[dict[str, Any]]:
        """The engine's reasons as data, each with a sentence."""
        if not explanations.is_waiting(job):
            return []
        sentences = explanations.sentences(job)
        return [{**reason, "sentence": sentence} for reason, sentence in zip(job.waiting, sentences, strict=True)]

    def get_notice(self, job: Job) -> str:
        """What is wrong with the job's cluster, for a job that has not ended."""
        return together(cluster_notices.of_job(job))

    @extend_schema_field(PlacementSerializer(allow_null=True))
    def get_placement(self, job: Job) -> dict[str, Any] | None:
        """The choice of the cluster, for a federated queue."""
        is_direct = self.context.get("is_new") and spec_of(job).queue == job.queue.name
        found = None if is_direct else selectors.placement(job)
        return PlacementSerializer(placement_of(found)).data if found else None

    @extend_schema_field(PodSerializer(many=True))
    def get_pods(self, job: Job) -> Any:  # noqa: ANN401  (serialized data)
        """The last attempt of every replica."""
        return [] if self.context.get("is_new") else PodSerializer(selectors.current_pods(job), many=True).data


class CheckedSerializer(serializers.Serializer[Any]):
    """The response to `dry_run`: the job that would be submitted."""

    spec = serializers.JSONField()
    warnings = serializers.ListField(child=serializers.CharField())


class SubmittedSerializer(serializers.Serializer[Any]):
    job = JobDetailSerializer()
    warnings = serializers.ListField(
        child=serializers.CharField(), help_text="one sentence for each field of a manifest without effect"
    )


class CopySerializer(serializers.Serializer[Any]):
    spec = serializers.SerializerMethodField()
    secrets = serializers.ListField(
        child=serializers.CharField(), help_text="names of secrets; enter their values again"
    )

    def get_spec(self, copy: JobClone) -> dict[str, Any]:
        """A JobSpec. Change it and send it to /api/v1/jobs."""
        return copy.spec.document()


class ScaledSerializer(serializers.Serializer[Any]):
    job = JobDetailSerializer()
    warnings = serializers.ListField(
        child=serializers.CharField(), help_text="settings that running pods keep in spite of the change, as sentences"
    )


class JobActionSerializer(serializers.Serializer[Any]):
    """RestartTask needs a task. RestartPod and RestartPartition need a task and the index of a replica."""

    rules: ClassVar[dict[str, Any]] = {
        "oneOf": [
            {
                "properties": {"action": {"not": {"enum": sorted(PARTIAL_ACTIONS)}}, "index": {"type": "null"}},
                "not": {"required": ["task"]},
            },
            {"properties": {"action": {"const": "RestartTask"}, "index": {"type": "null"}}, "required": ["task"]},
            *(
                {
                    "properties": {"action": {"const": action}, "index": {"type": "integer"}},
                    "required": ["task", "index"],
                }
                for action in ("RestartPod", "RestartPartition")
            ),
        ]
    }

    action = serializers.ChoiceField(choices=_PERSON_ACTIONS)
    task = serializers.CharField(max_length=63, default="", help_text="for RestartTask, RestartPod, RestartPartition")
    index = serializers.IntegerField(
        min_value=0, allow_null=True, default=None, help_text="for RestartPod, RestartPartition; counted from 0"
    )


class PrioritySerializer(serializers.Serializer[Any]):
    """Higher priorities are scheduled first in their queue."""

    priority = serializers.IntegerField(min_value=-MAX_PRIORITY, max_value=MAX_PRIORITY)
    revision = serializers.IntegerField(
        min_value=1, max_value=2**31 - 1, required=False, help_text="reject if the job has changed since this revision"
    )


class JobEventSerializer(serializers.Serializer[LoggedEvent]):
    number = serializers.IntegerField(source="id")
    at = serializers.DateTimeField()
    kind = serializers.CharField()
    actor = serializers.CharField(source="actor_name")
    impersonated_by = serializers.CharField(source="impersonator_name", help_text="admin; usually empty")
    sentence = serializers.SerializerMethodField()
    payload = serializers.JSONField()

    def get_sentence(self, event: LoggedEvent) -> str:
        """The message for people; can be empty."""
        return next((line.sentence for line in history.lines([event])), "")


class EventsSerializer(serializers.Serializer[Any]):
    events = JobEventSerializer(many=True)
    next_after = serializers.IntegerField(help_text="value of `after` for the next request")


class LogSerializer(serializers.Serializer[Any]):
    """Bytes `offset .. next_offset` as text. `complete`: the pod has ended and all of its log was returned."""

    text = serializers.CharField()
    offset = serializers.IntegerField()
    next_offset = serializers.IntegerField()
    complete = serializers.BooleanField()
