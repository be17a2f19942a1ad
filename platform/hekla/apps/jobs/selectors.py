"""Questions about jobs. What is outside one's tenants does not exist."""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import count
from uuid import UUID

from django.contrib.postgres.aggregates import ArrayAgg
from django.db.models import (
    Case,
    CharField,
    Count,
    DurationField,
    Exists,
    ExpressionWrapper,
    F,
    Min,
    OuterRef,
    Q,
    QuerySet,
    Subquery,
    Value,
    When,
)
from django.db.models.functions import Cast, Coalesce, Concat

from hekla.apps import paging
from hekla.apps.accounts import selectors as accounts
from hekla.apps.accounts.models import User
from hekla.apps.accounts.roles import Permission
from hekla.apps.clusters.models import Cluster, Node
from hekla.apps.event_log import selectors as event_log
from hekla.apps.event_log.models import LoggedEvent
from hekla.apps.jobs.facts import is_wanted, read_specs, replica_of, replicas, reserved_slots, spec_of
from hekla.apps.jobs.models import Arrangement, Job, Placement, Pod, SavedView
from hekla.apps.tenancy import selectors as tenancy
from hekla.apps.tenancy.models import Tenant
from hekla.apps.tenancy.selectors import Rights
from hekla.domain.addresses import Replica
from hekla.domain.errors import NotFound
from hekla.domain.jobspec import EXTERNAL
from hekla.domain.phases import FINAL_JOB_PHASES, FINAL_POD_PHASES, PLACED_POD_PHASES, GangPhase, JobPhase, PodPhase
from hekla.domain.resources import Resources

MOST_COUNTED = 1000
MOST_OF_COURSE = 400
MOST_EVICTIONS = 500
_COURSE = ("JobUnschedulable", "JobPhaseChanged", "GangPhaseChanged")
_LISTED = (
    *("uid", "name", "kind", "priority", "replicas", "phase", "reason", "waiting", "tenant__slug", "tenant__name"),
    *("queue__name", "cluster__name", "cluster__kind", "cluster__config", "owner__username", "owner__display_name"),
    *("submitted_at", "started_at", "finished_at", "deleted_at"),
    *("gang_phase", "version", "revision", "retry_count", "deadline_at"),
)
_UID = re.compile(r"[0-9a-f]{8}(-?[0-9a-f]{4}){3}-?[0-9a-f]{12}")
_NUMBER_AT_END = re.compile(r"-\d+$")
_AT_REST = [JobPhase.PENDING.value, JobPhase.RESTARTING.value]
_WAITING = {"phase": JobPhase.PENDING, "deleted_at": None}
_FINAL_JOBS = [phase.value for phase in FINAL_JOB_PHASES]
_FINAL_PODS = [phase.value for phase in FINAL_POD_PHASES]
_PLACED_PODS = [phase.value for phase in PLACED_POD_PHASES]


def visible_to(user: User, rights: Rights | None = None) -> QuerySet[Job]:
    """The jobs that exist for this person, newest first. `rights`: where they were read already."""
    return known_to(user, rights).filter(deleted_at=None)


def deleted_for(user: User, rights: Rights | None = None) -> QuerySet[Job]:
    """The jobs that were deleted and that this person may still look at, newest first."""
    return known_to(user, rights).filter(deleted_at__isnull=False)


def known_to(user: User, rights: Rights | None = None) -> QuerySet[Job]:
    """The jobs of which this person may know anything, the deleted ones among them."""
    jobs = Job.objects.select_related("tenant", "queue", "cluster", "owner")
    if not accounts.may(user, Permission.SEE_EVERYTHING):
        jobs = jobs.filter(tenant__in=(rights or tenancy.rights(user)).where(Permission.SEE_TENANT))
    return jobs.order_by("-submitted_at", "-id")


def listed(jobs: QuerySet[Job]) -> QuerySet[Job]:
    """These jobs with what a row of a list says of them, and no more: half of a job's columns are wide."""
    return jobs.only(*_LISTED)


def get(uid: UUID, user: User, rights: Rights | None = None) -> Job:
    """One job, which may be deleted. Raises NotFound."""
    job = known_to(user, rights).filter(uid=uid).first()
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
    return acting(user, tenancy.rights(user))(job)


def seeing(user: User, rights: Rights) -> Callable[[Job], bool]:
    """Whether a job exists for this person, for many jobs."""
    everywhere, tenants = accounts.may(user, Permission.SEE_EVERYTHING), set(rights.where(Permission.SEE_TENANT))
    return lambda job: job.deleted_at is None and (everywhere or job.tenant_id in tenants)


def acting(user: User, rights: Rights) -> Callable[[Job], bool]:
    """`may_act` for many jobs, of which the database is not asked again."""
    if accounts.may(user, Permission.ACT_ON_ANY_JOB):
        return lambda _job: True
    own, wide = rights.where(Permission.ACT_ON_OWN_JOBS), rights.where(Permission.ACT_ON_TENANT_JOBS)
    return lambda job: job.tenant_id in wide or (job.owner_id == user.pk and job.tenant_id in own)


def addresses(job: Job, address_of: Callable[[Replica], str]) -> dict[tuple[str, int], str]:
    """Where each replica can be reached, those among them that have no pod yet but will."""
    to_come = {place: address_of(replica_of(job, *place, slot)) for place, slot in reserved_slots(job).items()}
    known = to_come | {
        (task, index): address for task, index, address in pods(job).values_list("task", "index", "address")
    }
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


def history(job: Job) -> QuerySet[LoggedEvent]:
    """Everything that happened to the job, oldest first."""
    return event_log.about(f"job:{job.uid}")


def pod_history(pod: Pod) -> list[LoggedEvent]:
    """What was told of one attempt, oldest first."""
    facts = {"payload__task": pod.task, "payload__index": pod.index, "payload__attempt": pod.attempt}
    return list(history(pod.job).filter(**facts))


def course(job: Job) -> list[LoggedEvent]:
    """How the job went and what it waited for, oldest first: the newest events, at most `MOST_OF_COURSE`."""
    return list(history(job).filter(kind__in=_COURSE).order_by("-id")[:MOST_OF_COURSE])[::-1]


def evictions_of(job: Job) -> list[LoggedEvent]:
    """The newest evictions of its pods, newest first; at most `MOST_EVICTIONS`."""
    return list(history(job).filter(kind="PodEvicted").order_by("-id")[:MOST_EVICTIONS])


def evictions_for(job: Job) -> list[LoggedEvent]:
    """The newest evictions of others' pods for this job, newest first; at most `MOST_EVICTIONS`."""
    return event_log.gains(str(job.uid), limit=MOST_EVICTIONS)


def of_tenant(tenant_id: int, uids: Collection[str]) -> list[Job]:
    """Those of these jobs that belong to the tenant."""
    return list(Job.objects.filter(tenant_id=tenant_id, uid__in=uids)) if uids else []


def ahead_of(job: Job) -> int:
    """How many other jobs of its queue wait that are more urgent or came before it."""
    sooner = Q(priority__gt=job.priority) | Q(priority=job.priority, submitted_at__lt=job.submitted_at)
    waiting = Job.objects.filter(queue_id=job.queue_id, deleted_at=None, phase__in=_AT_REST)
    return waiting.filter(sooner).exclude(pk=job.pk).count()


def with_uids(uids: Collection[str]) -> list[Job]:
    """These jobs, whosever they are."""
    return list(Job.objects.filter(uid__in=uids)) if uids else []


def expiring(*, until: datetime, limit: int) -> list[Job]:
    """Jobs that are over and go by themselves before that, the first to go first."""
    return list(Job.objects.filter(deleted_at=None, expires_at__lte=until).order_by("expires_at")[:limit])


def waiting_of(owner_ids: Collection[int], uids: Collection[UUID], *, limit: int) -> list[Job]:
    """The jobs that wait to run, of these people or among these; those that came first before the others."""
    if not owner_ids and not uids:
        return []
    found = Job.objects.filter(Q(owner_id__in=owner_ids) | Q(uid__in=uids), deleted_at=None, phase=JobPhase.PENDING)
    return list(found.order_by("submitted_at")[:limit])


def waiting_since(jobs: Sequence[Job]) -> dict[int, datetime]:
    """For each job (by row id) since when it waits: its submission, or when it was resumed."""
    began = event_log.last_of_kind([f"job:{job.uid}" for job in jobs], "JobPhaseChanged")
    return {job.pk: began.get(f"job:{job.uid}", job.submitted_at) for job in jobs}


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


def phase_counts(jobs: QuerySet[Job], **others: QuerySet[Job]) -> dict[str, int]:
    """How many of these jobs are in each phase, and how many each of the others holds, where there are any.

    Up to `MOST_COUNTED` are counted: one more stands for any number more.
    """
    phases = [phase.value for phase in JobPhase]
    return paging.counts_up_to(MOST_COUNTED, jobs, "phase", phases, **others)


# What the metrics tell, of all tenants together.


def counts_by_queue() -> list[tuple[int, str, int]]:
    """Row id of a queue, phase, and how many jobs of the queue are in it; those that were deleted are left out."""
    found = Job.objects.filter(deleted_at=None).order_by().values_list("queue_id", "phase")
    return list(found.annotate(count=Count("id")))


def living_pods_by_cluster() -> list[tuple[int, str, int]]:
    """Row id of a cluster, phase, and how many pods of the cluster are in it; those that are over are left out."""
    found = Pod.objects.exclude(phase__in=_FINAL_PODS).order_by().values_list("job__cluster_id", "phase")
    return list(found.annotate(count=Count("id")))


def oldest_waits() -> dict[int, datetime]:
    """For each queue (by row id) in which jobs wait and hold nothing, since when the first of them does.

    As `waiting_since` tells it; a job without a reason never was in another phase, so the log need not be asked.
    """
    waiting = Job.objects.filter(~Exists(placed(Pod.objects.filter(job=OuterRef("pk")))), **_WAITING)
    subject = Concat(Value("job:"), Cast(OuterRef("uid"), CharField()))
    changed = LoggedEvent.objects.filter(subject=subject, kind="JobPhaseChanged").order_by("-id").values("at")[:1]
    since = Case(
        When(reason="", then=F("submitted_at")),
        default=Coalesce(Subquery(changed), F("submitted_at")),
    )
    return dict(waiting.order_by().values_list("queue_id").annotate(oldest=Min(since)))


# How somebody wants the list.


def arrangement(user: User) -> Arrangement:
    """How the person wants the list of jobs."""
    found = Arrangement.objects.select_related("opens_with").filter(user=user).first()
    return found or Arrangement(user=user)


def views_of(user: User, rights: Rights | None = None) -> QuerySet[SavedView]:
    """The views that the person has: their own, and those that their tenants share."""
    shared = Q(tenant__in=(rights or tenancy.rights(user)).where(Permission.SEE_TENANT))
    return SavedView.objects.filter(Q(owner=user, tenant=None) | shared).select_related("tenant").order_by("name")


def view(pk: int, user: User) -> SavedView:
    """One of the person's views. Raises NotFound."""
    found = views_of(user).filter(pk=pk).first()
    if found is None:
        raise NotFound("There is no such view.")
    return found


# What the controller asks.


def unfinished(cluster_id: int) -> list[Job]:
    """Jobs of a cluster that are not over, in the order of their submission."""
    found = Job.objects.filter(cluster_id=cluster_id).exclude(phase__in=_FINAL_JOBS)
    return list(found.select_related("queue", "owner", "tenant").order_by("id"))


def any_waiting(cluster_id: int) -> bool:
    """Whether a job of this cluster waits for its first start."""
    return Job.objects.filter(cluster_id=cluster_id, phase=JobPhase.PENDING, started_at=None).exists()


def has_work(cluster_id: int) -> bool:
    """Whether a job of this cluster is not over, or is and has a pod that still holds something."""
    alive = Job.objects.filter(cluster_id=cluster_id).exclude(phase__in=_FINAL_JOBS)
    held = Pod.objects.filter(job__cluster_id=cluster_id).exclude(phase__in=_FINAL_PODS)
    return alive.exists() or held.exists()


def ending(cluster_id: int) -> list[Job]:
    """Jobs of a cluster that are over and have pods that still hold something."""
    held = Pod.objects.exclude(phase__in=_FINAL_PODS).values("job_id")
    found = Job.objects.filter(cluster_id=cluster_id, phase__in=_FINAL_JOBS, pk__in=held)
    return list(found.select_related("queue", "tenant").order_by("id"))


def movable() -> QuerySet[Job]:
    """Jobs that wait in one of several clusters and of which nothing has a place, in the order of their turns."""
    waits = Job.objects.filter(phase=JobPhase.PENDING, gang_phase__in=(GangPhase.PENDING, GangPhase.INQUEUE))
    placed = Pod.objects.filter(job=OuterRef("pk")).exclude(phase=PodPhase.PENDING, node="", stopping=False)
    found = waits.filter(~Exists(placed), placement__span__isnull=False, deleted_at=None)
    return found.select_related("queue", "cluster", "tenant", "owner", "placement__span").order_by(
        "-priority", "submitted_at", "id"
    )


def placement(job: Job) -> Placement | None:
    """Why it is where it is; None for a job that named its queue itself."""
    return Placement.objects.filter(job=job).select_related("span").first()


def by_uids(cluster_id: int, uids: Collection[str]) -> list[Job]:
    """These jobs of a cluster, in the order of their submission."""
    found = Job.objects.filter(cluster_id=cluster_id, uid__in=_uids(uids))
    return list(found.select_related("queue", "owner", "tenant").order_by("id"))


def gone_among(cluster_id: int, *, kept: Collection[str], logged: Collection[str]) -> list[Job]:
    """Those of `kept` that are cleaned, and of `logged` those whose logs are purged: all that is to be gone."""
    is_gone = Q(uid__in=_uids(kept), cleaned_at__isnull=False) | Q(uid__in=_uids(logged), logs_purged_at__isnull=False)
    return list(Job.objects.filter(is_gone, cluster_id=cluster_id).select_related("tenant").order_by("id"))


def _uids(told: Iterable[str]) -> list[UUID]:
    """Those that can be the uid of a job: in a cluster anybody may put anything onto an object."""
    return [UUID(text) for text in told if _UID.fullmatch(text)]


def unfinished_pods(cluster_id: int) -> list[Pod]:
    """Pods of a cluster that are not over, with their jobs."""
    found = Pod.objects.filter(job__cluster_id=cluster_id).exclude(phase__in=_FINAL_PODS)
    return list(found.select_related("job__tenant").order_by("pk"))


def pods_of(job_ids: Sequence[int]) -> list[Pod]:
    """Every attempt of these jobs."""
    return list(Pod.objects.filter(job_id__in=job_ids).order_by("job_id", "task", "index", "attempt"))


def to_clean(cluster_id: int, *, limit: int) -> list[Job]:
    """Deleted jobs to which something may still be attached."""
    found = Job.objects.filter(cluster_id=cluster_id, deleted_at__isnull=False, cleaned_at=None)
    return list(found.select_related("tenant")[:limit])


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
    found = list(jobs.select_related("tenant").order_by("deleted_at", "pk")[:limit])
    return [job for job in found if job.tenant_id == found[0].tenant_id]


def placed(pods_on: QuerySet[Pod] | None = None) -> QuerySet[Pod]:
    """Pods that hold resources on a node."""
    return (pods_on if pods_on is not None else Pod.objects.all()).filter(phase__in=_PLACED_PODS)


def has_placed_pods(cluster: Cluster) -> bool:
    """Whether any pod of ours on this cluster holds something, so that it may be at work."""
    return placed(Pod.objects.filter(job__cluster=cluster).exclude(job__kind=EXTERNAL)).exists()


@dataclass(frozen=True, slots=True)
class Held:
    """What the pods of a job's task hold: `request` once for each of `nodes`, where one may stand several times."""

    job: Job
    nodes: Sequence[str]
    request: Resources


def held(cluster_ids: Sequence[int]) -> list[Held]:
    """What is held in these clusters, by job and task: there are far fewer of those than pods."""
    return _with_specs(placed(), Job.objects.filter(cluster_id__in=cluster_ids))


def held_by(tenant: Tenant) -> list[Held]:
    """What the tenant's pods hold in all clusters, likewise."""
    of_tenant = Job.objects.filter(tenant=tenant).select_related("cluster")
    return _with_specs(placed(Pod.objects.filter(job__tenant=tenant)), of_tenant)


def _with_specs(pods: QuerySet[Pod], known: QuerySet[Job]) -> list[Held]:
    found = _by_task(pods)
    jobs = known.defer("spec", "said", "waiting", "reserved_slots").in_bulk({job_id for job_id, _t, _n in found})
    read_specs(jobs.values())
    return _held(found, jobs)


def living(uids: Collection[str] | None) -> tuple[list[Job], list[Held]]:
    """Which of these jobs, or of all, wait or hold something, and what they hold."""
    pods = placed() if uids is None else placed(Pod.objects.filter(job__uid__in=uids))
    found = _by_task(pods)
    holding = Q(pk__in={job_id for job_id, _task, _nodes in found})
    jobs = Job.objects.filter(holding | Q(**_WAITING))
    jobs = (jobs if uids is None else jobs.filter(uid__in=uids)).defer("said", "waiting", "reserved_slots")
    return list(jobs), _held(found, {job.pk: job for job in jobs})


def _by_task(pods: QuerySet[Pod]) -> list[tuple[int, str, list[str]]]:
    rows = pods.order_by("job_id", "task").values_list("job_id", "task").annotate(nodes=ArrayAgg("node"))
    return list(rows)


def _held(found: Iterable[tuple[int, str, list[str]]], jobs: Mapping[int, Job]) -> list[Held]:
    return [
        Held(job, nodes, spec_of(job).task(task).request)
        for job_id, task, nodes in found
        if (job := jobs.get(job_id)) is not None
    ]


@dataclass(frozen=True, slots=True)
class OnNode:
    """Pods of one job on a machine: how many, and the first of them by row id and name."""

    job: Job
    pod_id: int
    pod_name: str
    count: int


def jobs_on(nodes: Collection[Node]) -> dict[tuple[int, str], list[OnNode]]:
    """Who holds something on these machines, by cluster and name, in the order in which they came."""
    names, clusters = {node.name for node in nodes}, {node.cluster_id for node in nodes}
    pods = placed(Pod.objects.filter(node__in=names, job__cluster_id__in=clusters))
    first: dict[tuple[int, str], tuple[int, str, int]] = {}
    counts: Counter[tuple[int, str]] = Counter()
    for pk, job_id, node, task, index in pods.order_by("pk").values_list("pk", "job_id", "node", "task", "index"):
        first.setdefault((job_id, node), (pk, task, index))
        counts[job_id, node] += 1
    jobs = Job.objects.only("uid", "name", "tenant", "cluster", "deleted_at").in_bulk({job_id for job_id, _n in first})
    found: defaultdict[tuple[int, str], list[OnNode]] = defaultdict(list)
    for (job_id, node), (pk, task, index) in first.items():
        one = OnNode(jobs[job_id], pk, f"{task}-{index}", counts[job_id, node])
        found[one.job.cluster_id, node].append(one)
    return found


def free_name(tenant: Tenant, wish: str) -> str:
    """A name like the wished one that the tenant has not used: `train-1`, `train-2` …"""
    stem = _NUMBER_AT_END.sub("", wish)[:45]
    taken = set(
        Job.objects.filter(tenant=tenant, deleted_at=None, name__startswith=stem).values_list("name", flat=True)
    )
    return next(name for n in count(1) if (name := f"{stem}-{n}") not in taken)


def run_times(cluster_id: int, *, limit: int) -> list[tuple[int, str, int, datetime, datetime]]:
    """Owner, kind, queue, start and end of the jobs of a cluster that completed, the newest first."""
    found = Job.objects.filter(cluster_id=cluster_id, phase=JobPhase.COMPLETED).order_by("-id")
    rows = found.values_list("owner_id", "kind", "queue_id", "started_at", "finished_at")[:limit]
    return [(owner, kind, queue, began, ended) for owner, kind, queue, began, ended in rows if began and ended]
