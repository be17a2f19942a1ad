"""Preemption risk: how many pods of a job hold borrowed resources, and which queues may reclaim them.

The plugins that count shares decide, as in a cycle: once for the cluster as it is, and once as if every other queue had
enough work for all of it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from hekla.apps.accounts.models import User
from hekla.apps.jobs.facts import spec_of
from hekla.apps.jobs.models import Job
from hekla.apps.queues import selectors as queues
from hekla.domain.phases import GangPhase
from hekla.domain.resources import Resources
from hekla.engine import model
from hekla.engine.cycle import open_session
from hekla.engine.extension_points import ExtensionPoint
from hekla.engine.faults import ExtensionFailed
from hekla.engine.job_info import ALLOCATED, JobInfo, PodInfo
from hekla.engine.policy import SchedulerPolicy
from hekla.engine.session import Session
from hekla.scheduling import cache, policies

_TAKES_BACK = frozenset({"reclaim", "gangreclaim"})
_WHOLE = 1 + 1e-9
_NEVER = "volcano.sh/preemptable"
MOST_CLAIMANTS = 5
_WORK = "work-of-"


@dataclass(frozen=True, slots=True)
class Claimant:
    """A queue with waiting jobs and a smaller share of what it deserves than the job's own queue."""

    queue: str
    share: float
    pods: int


@dataclass(frozen=True, slots=True)
class ReclaimRisk:
    """The preemption risk of a job with `pods` placed pods.

    `now`: pods that hold what the queue has beyond what it deserves; `most`: pods that plugins would allow to reclaim,
    if all other queues had enough work. `is_safe`: a code for why nothing can be reclaimed; empty if it can.
    """

    pods: int = 0
    now: int = 0
    most: int = 0
    share: float | None = None
    is_safe: str = ""
    claimants: tuple[Claimant, ...] = ()


def visible_risk(user: User, job: Job, *, now: datetime) -> ReclaimRisk:
    """The risk of a job; queues that the person may not see have an empty name."""
    found = of(job, now=now)
    known = set(queues.visible_to(user).values_list("name", flat=True))
    named = (replace(one, queue=one.queue if one.queue in known else "") for one in found.claimants)
    return replace(found, claimants=tuple(named))


def of(job: Job, *, now: datetime) -> ReclaimRisk:
    """The preemption risk of a job."""
    policy = policies.for_predictions(job.cluster)
    if safe := _safe(job, policy):
        return ReclaimRisk(is_safe=safe)
    state = cache.read_snapshot(job.cluster, now=now).state
    try:
        session = open_session(state, policy, now.timestamp())
        busy = open_session(_with_work(state, job.queue.name), policy, now.timestamp())
    except ExtensionFailed:
        return ReclaimRisk(is_safe="no_shares")
    return _found(session, busy, str(job.pk))


def _safe(job: Job, policy: SchedulerPolicy) -> str:
    """A code for why nothing is ever reclaimed from the job; empty if it may be."""
    if job.is_final:
        return "no_place"
    if not _TAKES_BACK & set(policy.actions):
        return "no_reclaim"
    if not job.queue.reclaimable:
        return "queue_keeps"
    return "job_keeps" if spec_of(job).annotations.get(_NEVER, "").lower() == "false" else ""


def _found(session: Session, busy: Session, uid: str) -> ReclaimRisk:
    job = session.jobs.get(uid)
    held = _held(session, job) if job else []
    if job is None or not held:
        return ReclaimRisk(is_safe="no_place")
    if not session.functions(ExtensionPoint.QUEUE_SHARE):
        return ReclaimRisk(pods=len(held), is_safe="no_shares")
    share = _share(session, job.group.queue)
    most = _reclaimable_count(busy, _held(busy, busy.jobs[uid]))
    return ReclaimRisk(len(held), _beyond(session, held), most, share, "", _claimants(session, job.group.queue, share))


def _held(session: Session, job: JobInfo) -> list[PodInfo]:
    """Its placed pods, the last first: the order of eviction."""
    return session.sort_pods([pod for pod in job.pods if pod.status in ALLOCATED])[::-1]


def _beyond(session: Session, held: Sequence[PodInfo]) -> int:
    """How many of these pods must be evicted until the queue holds no more than it deserves."""
    queue = held[0].job.group.queue
    wanted = (count for count in range(len(held)) if _share(session, queue, held[:count]) <= _WHOLE)
    return next(wanted, len(held))


def _reclaimable_count(busy: Session, held: Sequence[PodInfo]) -> int:
    """How many of these pods all plugins allow to evict for another queue's work."""
    claims = [job.pods[0] for uid, job in busy.jobs.items() if uid.startswith(_WORK)]
    return max(
        (len(busy.select_victims(ExtensionPoint.RECLAIMABLE, claim, held).victims) for claim in claims), default=0
    )


def _share(session: Session, queue: str, without: Sequence[PodInfo] = ()) -> float:
    """The queue's share, by the first plugin that counts shares."""
    return float(session.functions(ExtensionPoint.QUEUE_SHARE)[0](session.queues[queue], (), without))


def _claimants(session: Session, own: str, share: float) -> tuple[Claimant, ...]:
    """The queues with waiting jobs and a smaller share, the smallest first."""
    waiting: dict[str, int] = {}
    for job in session.jobs.values():
        count = sum(pod.status is model.PodStatus.PENDING for pod in job.pods)
        if count and job.group.queue != own:
            waiting[job.group.queue] = waiting.get(job.group.queue, 0) + count
    found = [Claimant(queue, _share(session, queue), pods) for queue, pods in waiting.items()]
    needy = sorted((one for one in found if one.share < min(share, 1.0)), key=lambda one: (one.share, one.queue))
    return tuple(needy[:MOST_CLAIMANTS])


def _with_work(state: model.ClusterState, own: str) -> model.ClusterState:
    """The same cluster, with a job in every other queue that requests all of its resources."""
    whole = sum((node.allocatable for node in state.nodes), Resources())
    others = [queue.name for queue in state.queues if queue.name != own]
    return replace(state, jobs=(*state.jobs, *(_work(queue, whole) for queue in others)))


def _work(queue: str, whole: Resources) -> model.PodGroupSpec:
    task = model.PodSpec(uid=f"{_WORK}{queue}", name=f"{_WORK}{queue}-0", role="work", request=whole)
    return model.PodGroupSpec(
        uid=f"{_WORK}{queue}",
        name=f"{_WORK}{queue}",
        namespace="work",
        queue=queue,
        min_available=1,
        min_resources=whole,
        phase=GangPhase.INQUEUE,
        pods=(task,),
    )
