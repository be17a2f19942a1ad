"""Pods of jobs: attempts, addresses, and what holds resources."""

from collections.abc import Callable, Collection, Sequence

from django.db.models import Q, QuerySet
from django.utils.translation import gettext as _

from hekla.apps.accounts.models import User
from hekla.apps.clusters.models import Cluster, Node
from hekla.apps.compiled import CompiledQuery, OneOf, Parameter
from hekla.apps.jobs.facts import is_wanted, replica_of, replicas, reserved_slots
from hekla.apps.jobs.models import Job, Pod
from hekla.apps.jobs.selectors.visibility import knowing
from hekla.apps.tenancy import selectors as tenancy
from hekla.domain.addresses import Replica
from hekla.domain.errors import NotFound
from hekla.domain.job_kinds import EXTERNAL
from hekla.domain.phases import FINAL_POD_PHASES, PLACED_POD_PHASES

_FINAL_PODS = [phase.value for phase in FINAL_POD_PHASES]
_PLACED_PODS = [phase.value for phase in PLACED_POD_PHASES]
_PODS_OF = CompiledQuery(
    lambda: Pod.objects.filter(OneOf("job", "jobs", Job._meta.pk)).order_by("job_id", "task", "index", "attempt")
)

_POD = CompiledQuery(
    lambda: Pod.objects.filter(pk=Parameter("pk", Pod._meta.pk)).select_related(
        "job__cluster__lease", "job__queue", "job__tenant"
    )
)


def addresses(job: Job, address_of: Callable[[Replica], str]) -> dict[tuple[str, int], str]:
    """The address of each replica, including those with a reserved slot and no pod yet."""
    to_come = {place: address_of(replica_of(job, *place, slot)) for place, slot in reserved_slots(job).items()}
    known = to_come | {
        (task, index): address for task, index, address in pods(job).values_list("task", "index", "address")
    }
    return {replica: known[replica] for replica in replicas(job) if replica in known}


def pods(job: Job) -> QuerySet[Pod]:
    """Every attempt of every replica, in order."""
    return Pod.objects.filter(job=job).order_by("task", "index", "attempt")


def has_living_pods(job: Job) -> bool:
    """Whether the job has an unfinished pod."""
    return pods(job).exclude(phase__in=_FINAL_PODS).exists()


def current_pods(job: Job) -> list[Pod]:
    """The last attempt of every replica, including surplus replicas until they have ended."""
    last = pods(job).order_by("task", "index", "-attempt").distinct("task", "index")
    return [pod for pod in last if not pod.is_final or is_wanted(job, pod)]


def replica_states(job: Job) -> list[tuple[str, int, str, str]]:
    """Every replica that has a pod, with the phase and node of its last attempt, in order."""
    last = Pod.objects.filter(job=job).order_by("task", "index", "-attempt").distinct("task", "index")
    return list(last.values_list("task", "index", "phase", "node"))


def attempts(job: Job, refs: Collection[tuple[str, int]]) -> list[Pod]:
    """All attempts of these replicas, in order."""
    if not refs:
        return []
    wanted = Q()
    for task in {task for task, _index in refs}:
        wanted |= Q(task=task, index__in=[index for other, index in refs if other == task])
    return list(pods(job).filter(wanted))


def pod(pod_id: int, user: User) -> Pod:
    """One pod, with the lease of its cluster. Raises NotFound."""
    for found in _POD.rows(pk=pod_id):
        if knowing(user, tenancy.rights(user))(found.job):
            return found
    raise NotFound(_("Unknown pod."))


def pods_of(job_ids: Sequence[int]) -> list[Pod]:
    """Every attempt of these jobs."""
    return _PODS_OF.rows(jobs=list(job_ids))


def unfinished_pods(cluster_id: int) -> list[Pod]:
    """Unfinished pods of a cluster, with their jobs."""
    found = Pod.objects.filter(job__cluster_id=cluster_id).exclude(phase__in=_FINAL_PODS)
    return list(found.select_related("job__tenant").order_by("pk"))


def placed(pods_on: QuerySet[Pod] | None = None) -> QuerySet[Pod]:
    """Pods that hold resources on a node."""
    return (pods_on if pods_on is not None else Pod.objects.all()).filter(phase__in=_PLACED_PODS)


def has_placed_pods(cluster: Cluster) -> bool:
    """Whether a pod on this cluster holds resources and may be running; external pods do not count."""
    return placed(Pod.objects.filter(job__cluster=cluster).exclude(job__kind=EXTERNAL)).exists()


def pods_left_on(node: Node) -> tuple[int, int]:
    """How many of our own pods have not ended on a node, and how many external ones."""
    found = placed(Pod.objects.filter(node=node.name, job__cluster=node.cluster_id))
    every, external = found.count(), found.filter(job__kind=EXTERNAL).count()
    return every - external, external
