"""From rows to what the engine is told."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from hekla.apps.clusters.models import Node
from hekla.apps.jobs.facts import all_pod_facts, job_facts, spec_of
from hekla.apps.jobs.models import Job, Pod
from hekla.apps.queues.models import Queue
from hekla.domain.lifecycle import stage_of
from hekla.domain.phases import GangPhase, PodPhase
from hekla.domain.resources import Resources
from hekla.engine import model

_STATUS = {
    PodPhase.PENDING: model.TaskStatus.PENDING,
    PodPhase.BOUND: model.TaskStatus.BOUND,
    PodPhase.PREPARING: model.TaskStatus.BOUND,
    PodPhase.RUNNING: model.TaskStatus.RUNNING,
    PodPhase.SUCCEEDED: model.TaskStatus.SUCCEEDED,
    PodPhase.FAILED: model.TaskStatus.FAILED,
    PodPhase.LOST: model.TaskStatus.FAILED,
}
_PREEMPTABLE = "volcano.sh/preemptable"
_OF_PODS = frozenset(
    {
        _PREEMPTABLE,
        "volcano.sh/cooldown-time",
        "volcano.sh/revocable-zone",
        "volcano.sh/jdb-min-available",
        "volcano.sh/jdb-max-unavailable",
    }
)
"""Annotations of a job that its pods carry too (`volcano-spec` §1.5)."""
_ONE_POD = Resources({"pods": 1})


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What the engine is told, and the rows behind it. Engine names: a job's and a pod's row id as text."""

    state: model.ClusterState
    jobs: dict[str, Job]
    pods: dict[str, Pod]


@dataclass(frozen=True, slots=True)
class _Role:
    """What all pods of a task have in common: the very same objects, by which the engine tells equals quickly."""

    request: Resources
    selector: Mapping[str, str]
    annotations: Mapping[str, str]


def node(node: Node) -> model.Node:
    """A machine, as the engine is told of it."""
    return model.Node(
        name=node.name,
        allocatable=Resources.parse(node.allocatable),
        labels=node.labels,
        unschedulable=node.is_cordoned or not node.is_ready,
    )


def queue(queue: Queue) -> model.Queue:
    """A queue, likewise."""
    return model.Queue(
        name=queue.name,
        weight=queue.weight,
        capability=Resources.parse(queue.capability) if queue.capability else None,
        guarantee=Resources.parse(queue.guarantee) if queue.guarantee else None,
        deserved=Resources.parse(queue.deserved) if queue.deserved else None,
        parent=queue.parent.name if queue.parent else "",
        reclaimable=queue.reclaimable,
        priority=queue.priority,
        is_open=True,  # a closed queue takes no submissions; what is in goes on
        created_at=queue.created_at.timestamp(),
    )


def job(job: Job, pods: Iterable[Pod], nominated: Mapping[str, str]) -> model.Job:
    """A job with these pods. `nominated`: the nodes that are kept for some of them.

    Its gang is what is not held back by a dependency; for admission to the queue it is asked for all of it.
    """
    spec, pods = spec_of(job), list(pods)
    stage = stage_of(job_facts(job), all_pod_facts(pods) if spec.has_dependencies else ())
    carried = {name: text for name, text in spec.annotations.items() if name in _OF_PODS}
    roles = {task.name: _Role(task.request + _ONE_POD, task.node_selector, carried) for task in spec.tasks}
    counted = [pod for pod in pods if pod.version == job.version or not pod.is_final]
    return model.Job(
        uid=str(job.pk),
        name=job.name,
        namespace=str(job.tenant_id),
        queue=job.queue.name,
        priority=job.priority,
        min_available=stage.minimum,
        min_task_member=stage.minimums,
        min_resources=spec.minimum_resources(),
        phase=GangPhase(job.gang_phase),
        created_at=job.submitted_at.timestamp(),
        preemptable=_says(spec.annotations, default="false"),
        annotations=spec.annotations,
        tasks=tuple(_task(pod, job, roles[pod.task], nominated) for pod in _latest(counted)),
    )


def _says(annotations: Mapping[str, str], *, default: str) -> bool:
    """Whether pods may be evicted; unless they say otherwise they may, and jobs do not ask for it."""
    return annotations.get(_PREEMPTABLE, default).lower() in ("true", "t", "1")


def _latest(pods: Iterable[Pod]) -> list[Pod]:
    """The last attempt of each replica, and earlier ones that still hold something."""
    last = {(pod.task, pod.index): pod.pk for pod in pods}
    return [pod for pod in pods if not pod.is_final or (last[pod.task, pod.index] == pod.pk and not pod.stopping)]


def _task(pod: Pod, job: Job, role: _Role, nominated: Mapping[str, str]) -> model.Task:
    ending = pod.stopping and not pod.is_final
    return model.Task(
        uid=str(pod.pk),
        name=f"{job.name}-{pod.task}-{pod.index}",
        role=pod.task,
        request=role.request,
        status=model.TaskStatus.RELEASING if ending else _STATUS[PodPhase(pod.phase)],
        node=pod.node,
        priority=job.priority,
        nominated_node=nominated.get(str(pod.pk), "") if pod.phase == PodPhase.PENDING else "",
        created_at=pod.created_at.timestamp(),
        node_selector=role.selector,
        preemptable=_says(role.annotations, default="true"),
        annotations=role.annotations,
        scheduled_at=pod.bound_at.timestamp() if pod.bound_at else 0.0,
    )
