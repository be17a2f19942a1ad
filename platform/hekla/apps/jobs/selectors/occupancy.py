"""Resources that jobs hold, by cluster, tenant and node."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from django.contrib.postgres.aggregates import ArrayAgg
from django.db.models import Q, QuerySet

from hekla.apps.clusters import selectors as clusters
from hekla.apps.clusters.models import Node
from hekla.apps.jobs.facts import read_specs, spec_of
from hekla.apps.jobs.models import Job, Pod
from hekla.apps.jobs.selectors.replicas import placed
from hekla.apps.tenancy.models import Tenant
from hekla.domain.phases import JobPhase
from hekla.domain.resources import Resources
from hekla.domain.runtime_classes import NO_RUNTIME_CLASS, RuntimeClassFacts
from hekla.domain.task_spec import TaskSpec

_WAITING = {"phase": JobPhase.PENDING, "deleted_at": None}


@dataclass(frozen=True, slots=True)
class TaskAllocation:
    """What the pods of a task hold: `request` once per entry of `nodes`, where a node can occur several times.

    `request`: with the overhead of the runtime class.
    """

    job: Job
    nodes: Sequence[str]
    request: Resources


def held(cluster_ids: Sequence[int]) -> list[TaskAllocation]:
    """What pods hold in these clusters, by job and task: there are far fewer of those than pods."""
    return _with_specs(placed(), Job.objects.filter(cluster_id__in=cluster_ids))


def held_by(tenant: Tenant) -> list[TaskAllocation]:
    """What the tenant's pods hold in all clusters, by job and task."""
    of_tenant = Job.objects.filter(tenant=tenant).select_related("cluster")
    return _with_specs(placed(Pod.objects.filter(job__tenant=tenant)), of_tenant)


def _with_specs(pods: QuerySet[Pod], known: QuerySet[Job]) -> list[TaskAllocation]:
    found = _by_task(pods)
    jobs = known.defer("spec", "message_facts", "waiting", "reserved_slots").in_bulk(
        {job_id for job_id, _t, _n in found}
    )
    read_specs(jobs.values())
    return _held(found, jobs)


def living(uids: Collection[str] | None) -> tuple[list[Job], list[TaskAllocation]]:
    """The jobs that wait or hold resources, and what they hold. `uids` None: of all jobs."""
    pods = placed() if uids is None else placed(Pod.objects.filter(job__uid__in=uids))
    found = _by_task(pods)
    holding = Q(pk__in={job_id for job_id, _task, _nodes in found})
    jobs = Job.objects.filter(holding | Q(**_WAITING))
    jobs = (jobs if uids is None else jobs.filter(uid__in=uids)).defer("message_facts", "waiting", "reserved_slots")
    return list(jobs), _held(found, {job.pk: job for job in jobs})


def _by_task(pods: QuerySet[Pod]) -> list[tuple[int, str, list[str]]]:
    rows = pods.order_by("job_id", "task").values_list("job_id", "task").annotate(nodes=ArrayAgg("node"))
    return list(rows)


def _held(found: Iterable[tuple[int, str, list[str]]], jobs: Mapping[int, Job]) -> list[TaskAllocation]:
    held = [(job, spec_of(job).task(task), nodes) for job_id, task, nodes in found if (job := jobs.get(job_id))]
    named = {job.cluster_id for job, task, _nodes in held if task.runtime_class}
    runtimes = clusters.runtime_classes(named) if named else {}
    return [TaskAllocation(job, nodes, _request(job, task, runtimes)) for job, task, nodes in held]


def _request(job: Job, task: TaskSpec, runtimes: Mapping[int, Mapping[str, RuntimeClassFacts]]) -> Resources:
    if not task.runtime_class:
        return task.request
    return task.request + runtimes.get(job.cluster_id, {}).get(task.runtime_class, NO_RUNTIME_CLASS).overhead


def card_holders(nodes: Collection[Node]) -> dict[tuple[int, str], list[Pod]]:
    """The pods that hold cards of these nodes, with their jobs, by (cluster id, node name)."""
    names, clusters = {node.name for node in nodes}, {node.cluster_id for node in nodes}
    pods = placed(Pod.objects.filter(node__in=names, job__cluster_id__in=clusters)).exclude(cards=[])
    of_job = (f"job__{name}" for name in ("uid", "name", "tenant", "cluster", "deleted_at"))
    found: defaultdict[tuple[int, str], list[Pod]] = defaultdict(list)
    for pod in pods.select_related("job").only("task", "index", "node", "cards", *of_job).order_by("pk"):
        found[pod.job.cluster_id, pod.node].append(pod)
    return found


@dataclass(frozen=True, slots=True)
class JobOnNode:
    """Pods of one job on a node: their number, and the row id and name of the first."""

    job: Job
    pod_id: int
    pod_name: str
    count: int


def jobs_on(nodes: Collection[Node]) -> dict[tuple[int, str], list[JobOnNode]]:
    """The jobs with pods on these nodes, by (cluster id, node name), in the order of their first pods."""
    names, clusters = {node.name for node in nodes}, {node.cluster_id for node in nodes}
    pods = placed(Pod.objects.filter(node__in=names, job__cluster_id__in=clusters))
    first: dict[tuple[int, str], tuple[int, str, int]] = {}
    counts: Counter[tuple[int, str]] = Counter()
    for pk, job_id, node, task, index in pods.order_by("pk").values_list("pk", "job_id", "node", "task", "index"):
        first.setdefault((job_id, node), (pk, task, index))
        counts[job_id, node] += 1
    jobs = Job.objects.only("uid", "name", "tenant", "cluster", "deleted_at").in_bulk({job_id for job_id, _n in first})
    found: defaultdict[tuple[int, str], list[JobOnNode]] = defaultdict(list)
    for (job_id, node), (pk, task, index) in first.items():
        one = JobOnNode(jobs[job_id], pk, f"{task}-{index}", counts[job_id, node])
        found[one.job.cluster_id, node].append(one)
    return found
