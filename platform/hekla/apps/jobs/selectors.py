"""Questions about jobs. What is outside one's tenants does not exist."""

import re
from collections.abc import Callable, Collection, Sequence
from datetime import datetime, timedelta
from itertools import count
from uuid import UUID

from django.db.models import Count, DurationField, ExpressionWrapper, F, Q, QuerySet, Value

from hekla.apps.accounts import selectors as accounts
from hekla.apps.accounts.models import User
from hekla.apps.accounts.roles import Permission
from hekla.apps.jobs.facts import is_wanted, replicas, reserved_slots
from hekla.apps.jobs.models import Job, Pod
from hekla.apps.outbox import selectors as outbox
from hekla.apps.outbox.models import Event
from hekla.apps.tenancy import selectors as tenancy
from hekla.apps.tenancy.models import Tenant
from hekla.domain.errors import NotFound
from hekla.domain.phases import FINAL_JOB_PHASES, FINAL_POD_PHASES, PLACED_POD_PHASES, PodPhase

_NUMBER_AT_END = re.compile(r"-\d+$")
_FINAL_JOBS = [phase.value for phase in FINAL_JOB_PHASES]
_FINAL_PODS = [phase.value for phase in FINAL_POD_PHASES]
_PLACED_PODS = [phase.value for phase in PLACED_POD_PHASES]


def visible_to(user: User) -> QuerySet[Job]:
    """The jobs that exist for this person, newest first."""
    return known_to(user).filter(deleted_at=None)


def deleted_for(user: User) -> QuerySet[Job]:
    """The jobs that were deleted and that this person may still look at, newest first."""
    return known_to(user).filter(deleted_at__isnull=False)


def known_to(user: User) -> QuerySet[Job]:
    """The jobs of which this person may know anything, the deleted ones among them."""
    jobs = Job.objects.select_related("tenant", "queue", "cluster", "owner")
    if not accounts.may(user, Permission.SEE_EVERYTHING):
        jobs = jobs.filter(tenant__in=tenancy.where(user, Permission.SEE_TENANT))
    return jobs.order_by("-submitted_at", "-id")


def get(uid: UUID, user: User) -> Job:
    """One job, which may be deleted. Raises NotFound."""
    job = known_to(user).filter(uid=uid).first()
    if job is None:
        raise NotFound("There is no such job.")
    return job


def by_name(name: str, user: User) -> Job:
    """The newest job of that name. Raises NotFound."""
    job = visible_to(user).filter(name=name).first()
    if job is None:
        raise NotFound(f"There is no job called “{name[:60]}”.")
    return job


def may_act(user: User, job: Job) -> bool:
    """Whether the person may abort, resume, restart or delete the job."""
    own = job.owner_id == user.pk and tenancy.may(user, job.tenant_id, Permission.ACT_ON_OWN_JOBS)
    wide = tenancy.may(user, job.tenant_id, Permission.ACT_ON_TENANT_JOBS)
    return own or wide or accounts.may(user, Permission.ACT_ON_ANY_JOB)


def addresses(job: Job, address_of: Callable[[int], str]) -> dict[tuple[str, int], str]:
    """Where each replica can be reached, those among them that have no pod yet but will."""
    to_come = {replica: address_of(slot) for replica, slot in reserved_slots(job).items()}
    known = to_come | {(pod.task, pod.index): pod.address for pod in pods(job)}
    return {replica: known[replica] for replica in replicas(job) if replica in known}


def pods(job: Job) -> QuerySet[Pod]:
    """Every attempt of every replica, in order."""
    return Pod.objects.filter(job=job).order_by("task", "index", "attempt")


def has_living_pods(job: Job) -> bool:
    """Whether a pod of it holds something, or may still."""
    return pods(job).exclude(phase__in=_FINAL_PODS).exists()


def current_pods(job: Job) -> list[Pod]:
    """The last attempt of every replica, and of those that are wanted no more while they end."""
    last = pods(job).order_by("task", "index", "-attempt").distinct("task", "index")
    return [pod for pod in last if not pod.is_final or is_wanted(job, pod)]


def replicas_with_phase(job: Job) -> list[tuple[str, int, str]]:
    """Every replica that has a pod, with the phase of its last attempt, in order."""
    last = Pod.objects.filter(job=job).order_by("task", "index", "-attempt").distinct("task", "index")
    return list(last.values_list("task", "index", "phase"))


def attempts(job: Job, refs: Collection[tuple[str, int]]) -> list[Pod]:
    """All attempts of these replicas, in order."""
    if not refs:
        return []
    wanted = Q()
    for task in {task for task, _index in refs}:
        wanted |= Q(task=task, index__in=[index for other, index in refs if other == task])
    return list(pods(job).filter(wanted))


def pod(pod_id: int, user: User) -> Pod:
    """One pod. Raises NotFound."""
    found = Pod.objects.select_related("job__cluster", "job__queue", "job__tenant").filter(pk=pod_id).first()
    if found is None or not known_to(user).filter(pk=found.job_id).exists():
        raise NotFound("There is no such pod.")
    return found


def history(job: Job) -> QuerySet[Event]:
    """Everything that happened to the job, oldest first."""
    return outbox.about(f"job:{job.uid}")


def pod_history(pod: Pod) -> list[Event]:
    """What was told of one attempt, oldest first."""
    facts = {"payload__task": pod.task, "payload__index": pod.index, "payload__attempt": pod.attempt}
    return list(history(pod.job).filter(**facts))


def of_kinds(job: Job, kinds: Sequence[str], *, limit: int) -> list[Event]:
    """The newest events of these kinds about the job, oldest first."""
    return list(history(job).filter(kind__in=kinds).order_by("-id")[:limit])[::-1]


def pod_counts(jobs: Sequence[Job]) -> dict[int, dict[str, int]]:
    """For each job (by row id) how many current pods are in each phase; a success that counts no more is left out."""
    latest = (
        Pod.objects.filter(job__in=[job.pk for job in jobs])
        .order_by("job_id", "task", "index", "-attempt")
        .distinct("job_id", "task", "index")
        .values_list("job_id", "phase", "stopping")
    )
    counts: dict[int, dict[str, int]] = {job.pk: {} for job in jobs}
    for job_id, phase, stopping in latest:
        if not (stopping and phase == PodPhase.SUCCEEDED):
            counts[job_id][phase] = counts[job_id].get(phase, 0) + 1
    return counts


def phase_counts(jobs: QuerySet[Job]) -> dict[str, int]:
    """How many of these jobs are in each phase."""
    rows = jobs.order_by().values_list("phase").annotate(count=Count("id"))
    return dict(rows)


def kinds(jobs: QuerySet[Job]) -> list[str]:
    """What kinds of jobs there are among these."""
    return list(jobs.order_by("kind").values_list("kind", flat=True).distinct())


# What the controller asks.


def unfinished(cluster_id: int) -> list[Job]:
    """Jobs of a cluster that are not over, in the order of their submission."""
    found = Job.objects.filter(cluster_id=cluster_id).exclude(phase__in=_FINAL_JOBS)
    return list(found.select_related("queue", "owner").order_by("id"))


def ending(cluster_id: int) -> list[Job]:
    """Jobs of a cluster that are over and have pods that still hold something."""
    held = Pod.objects.exclude(phase__in=_FINAL_PODS).values("job_id")
    found = Job.objects.filter(cluster_id=cluster_id, phase__in=_FINAL_JOBS, pk__in=held)
    return list(found.select_related("queue").order_by("id"))


def by_uids(cluster_id: int, uids: Collection[str]) -> list[Job]:
    """These jobs of a cluster, in the order of their submission."""
    return list(Job.objects.filter(cluster_id=cluster_id, uid__in=uids).select_related("queue", "owner").order_by("id"))


def unfinished_pods(cluster_id: int) -> list[Pod]:
    """Pods of a cluster that are not over, with their jobs."""
    found = Pod.objects.filter(job__cluster_id=cluster_id).exclude(phase__in=_FINAL_PODS)
    return list(found.select_related("job").order_by("pk"))


def pods_of(job_ids: Sequence[int]) -> list[Pod]:
    """Every attempt of these jobs."""
    return list(Pod.objects.filter(job_id__in=job_ids).order_by("job_id", "task", "index", "attempt"))


def to_clean(cluster_id: int, *, limit: int) -> list[Job]:
    """Deleted jobs to which something may still be attached."""
    return list(Job.objects.filter(cluster_id=cluster_id, deleted_at__isnull=False, cleaned_at=None)[:limit])


def with_overdue_logs(cluster_id: int, *, now: datetime, limit: int) -> list[Job]:
    """Jobs of one tenant whose logs it keeps no longer, the first deleted first."""
    cleaned = _deleted_before(cluster_id, now, "tenant__log_days").filter(cleaned_at__isnull=False)
    return _of_one_tenant(cleaned.filter(logs_purged_at=None), limit)


def with_overdue_history(cluster_id: int, *, now: datetime, limit: int) -> list[Job]:
    """Jobs of one tenant whose history it keeps no longer, the first deleted first."""
    overdue = _deleted_before(cluster_id, now, "tenant__history_days")
    return _of_one_tenant(overdue.filter(logs_purged_at__isnull=False), limit)


def _deleted_before(cluster_id: int, now: datetime, days: str) -> QuerySet[Job]:
    kept_for = ExpressionWrapper(F(days) * Value(timedelta(days=1)), output_field=DurationField())
    return Job.objects.filter(cluster_id=cluster_id, deleted_at__lte=Value(now) - kept_for)


def _of_one_tenant(jobs: QuerySet[Job], limit: int) -> list[Job]:
    found = list(jobs.order_by("deleted_at", "pk")[:limit])
    return [job for job in found if job.tenant_id == found[0].tenant_id]


def placed(pods_on: QuerySet[Pod] | None = None) -> QuerySet[Pod]:
    """Pods that hold resources on a node."""
    return (pods_on if pods_on is not None else Pod.objects.all()).filter(phase__in=_PLACED_PODS)


def usage_by_node(cluster_ids: Sequence[int]) -> list[Pod]:
    """The pods that hold resources in these clusters, with their jobs."""
    found = placed(Pod.objects.filter(job__cluster_id__in=cluster_ids))
    return list(found.select_related("job__queue", "job__tenant"))


def waiting_in(queue_ids: Sequence[int]) -> dict[int, int]:
    """How many unfinished jobs of each queue have not started."""
    rows = (
        Job.objects.filter(queue_id__in=queue_ids, deleted_at=None)
        .filter(Q(phase="pending"))
        .values_list("queue_id")
        .annotate(count=Count("id"))
    )
    return dict(rows)


def free_name(tenant: Tenant, wish: str) -> str:
    """A name like the wished one that the tenant has not used: `train-1`, `train-2` …"""
    stem = _NUMBER_AT_END.sub("", wish)[:45]
    taken = set(
        Job.objects.filter(tenant=tenant, deleted_at=None, name__startswith=stem).values_list("name", flat=True)
    )
    return next(name for n in count(1) if (name := f"{stem}-{n}") not in taken)
