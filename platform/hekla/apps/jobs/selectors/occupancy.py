"""Resources that jobs hold, by cluster, tenant and node."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from django.contrib.postgres.aggregates import ArrayAgg
from django.db import connection
from django.db.models import Q, QuerySet

from hekla.apps.accounts import selectors as accounts
from hekla.apps.accounts.models import User
from hekla.apps.accounts.roles import Permission
from hekla.apps.clusters import selectors as clusters
from hekla.apps.clusters.models import Node
from hekla.apps.jobs.facts import read_specs, spec_of
from hekla.apps.jobs.models import MOST_JOBS_ON_NODE, Job, Pod
from hekla.apps.jobs.selectors.replicas import placed
from hekla.apps.tenancy.models import Tenant
from hekla.apps.tenancy.selectors import Rights
from hekla.domain.phases import PLACED_POD_PHASES, JobPhase
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


class JobOnNode(NamedTuple):
    """Pods of one job on a node: their number, and the row id and name of the first. A page has hundreds."""

    uid: str
    name: str
    pod_id: int
    pod_name: str
    pods: int


_FIRST_PODS = """
    SELECT id, cluster_id, node, task || '-' || index, count, uid::text, name
    FROM (
        SELECT first.id, job.cluster_id, wanted.node, first.task, first.index, first.count, job.uid, job.name,
            row_number() OVER (PARTITION BY wanted.node, job.cluster_id ORDER BY first.id) AS place
        FROM unnest(%(nodes)s::text[]) AS wanted(node)
        CROSS JOIN LATERAL (
            SELECT DISTINCT ON (job_id) id, job_id, task, index, count(*) OVER (PARTITION BY job_id) AS count
            FROM jobs_pod
            WHERE jobs_pod.node = wanted.node AND phase = ANY(%(placed)s::text[])
            ORDER BY job_id, id
        ) AS first
        JOIN jobs_job AS job ON job.id = first.job_id
        WHERE job.deleted_at IS NULL AND job.cluster_id = ANY(%(clusters)s::bigint[])
            AND (%(everywhere)s OR job.tenant_id = ANY(%(tenants)s::bigint[]))
    ) AS numbered
    WHERE place <= %(most)s
    ORDER BY id
"""
"""The first pod of each job on each node, with the number of its pods there: a node may have hundreds of a job.

Written out: for fifty nodes at once, the database expects it to be cheaper to read all unfinished pods.
"""


def jobs_on(nodes: Collection[Node], user: User, rights: Rights) -> dict[tuple[int, str], list[JobOnNode]]:
    """The jobs with pods on these nodes that the person may see, by (cluster id, node name), in the order of their
    first pods: of each node one more than `MOST_JOBS_ON_NODE`, if there are more.
    """
    wanted: dict[str, Any] = {
        "nodes": [*{node.name for node in nodes}],
        "clusters": [*{node.cluster_id for node in nodes}],
        "placed": [phase.value for phase in PLACED_POD_PHASES],
        "everywhere": accounts.may(user, Permission.SEE_EVERYTHING),
        "tenants": rights.where(Permission.SEE_TENANT),
        "most": MOST_JOBS_ON_NODE + 1,
    }
    found: defaultdict[tuple[int, str], list[JobOnNode]] = defaultdict(list)
    with connection.cursor() as cursor:
        cursor.execute(_FIRST_PODS, wanted)
        for pk, cluster_id, node, pod, count, uid, name in cursor.fetchall():
            found[cluster_id, node].append(JobOnNode(uid, name, pk, pod, count))
    return found
