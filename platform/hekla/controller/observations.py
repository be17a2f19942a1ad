"""What the backend sees, taken down job by job; and what it does not see any more."""

import logging
import time
from collections import defaultdict
from collections.abc import Callable, Container, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from hekla.apps.clusters import leases
from hekla.apps.jobs import services
from hekla.apps.jobs.models import Pod
from hekla.apps.jobs.services.observations import Sighting
from hekla.backends.base import Backend, BackendError, Observation, PodKey, PodRunner
from hekla.backends.external_pods import DisplayedQueues
from hekla.backends.tenancy import TenantOrder
from hekla.domain.phases import PodPhase
from hekla.lib import clock
from hekla.scheduling.cache import Picture

log = logging.getLogger(__name__)
_SURE_SECONDS = 0.5
"""So lately renewed, the lease is not renewed again: a tenth of the time for which nobody else can take it."""


@dataclass
class Others:
    """Of pods that others made.

    `of`: the way in which they were reached. `homes`: by uid, the group in which a pod was taken in. `looked`: the
    namespaces that were seen as they are. `taken`: by group, what was taken down last; `refused`: why it is not taken.
    By uid, `bound`: when it was told its node; `told`: which kind of reason was written to it.
    """

    of: object = None
    has_begun: bool = False
    homes: dict[str, str | None] = field(default_factory=dict)
    looked: set[str] = field(default_factory=set)
    taken: dict[str, object] = field(default_factory=dict)
    bound: dict[str, float] = field(default_factory=dict)
    told: dict[str, object] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)


@dataclass
class QueuesShown:
    """What was shown in the cluster of its queues: by whom, which they were, when, and what went wrong last."""

    by: DisplayedQueues | None = None
    stamp: object = None
    at: float = float("-inf")
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Spared:
    """A pod that is not to go: why, and until when nobody asks again, on the clock that never stands still."""

    why: str
    until: float


@dataclass
class Delay:
    """Pods of a job that the place does not take yet: since when, on the clock that never stands still, and of which
    reasons the log was told.
    """

    since: float
    told: set[str] = field(default_factory=set)


@dataclass
class Memory:
    """What one process remembers between turns: where it stands with the backend, and what it has seen started.

    `nominated`: the nodes from which pods were evicted, by the pod that is to come there. Without it the engine finds
    the room that becomes free by itself, only perhaps for another pod. `sure_at`: when the lease was last seen to be
    ours, on the clock that also counts while this process is stopped. `followed`: of jobs that somebody else leads,
    what was taken down last: the same need not be taken down again. `others`: the same of pods that others made.
    `spared`: rows of pods that a budget keeps. `kept`: by tenant what was ordered for it last, and until when, on that
    clock, the same need not be ordered again; `has_left`: tenants without jobs were looked for. `delays`: by row the
    jobs of which pods were not taken when they were to be started last.
    """

    cursor: str | None = None
    seen: set[PodKey] = field(default_factory=set)
    nominated: dict[str, str] = field(default_factory=dict)
    sure_at: float = float("-inf")
    followed: dict[int, object] = field(default_factory=dict)
    others: Others = field(default_factory=Others)
    spared: dict[int, Spared] = field(default_factory=dict)
    kept: dict[str, tuple[TenantOrder, float]] = field(default_factory=dict)
    has_left: bool = False
    delays: dict[int, Delay] = field(default_factory=dict)
    queues_shown: QueuesShown = field(default_factory=QueuesShown)


@dataclass(frozen=True)
class Hold:
    """A cluster in one's hands for a turn: the epoch that every write names, its backend, and what one remembers."""

    cluster_id: int
    epoch: int
    backend: Backend
    memory: Memory

    @property
    def runner(self) -> PodRunner:
        """Starts and stops single pods. Raises BackendError where the cluster's own scheduler does."""
        runner = self.backend.runner
        if runner is None:
            raise BackendError("The cluster's own scheduler starts and stops its pods")
        return runner

    def require(self) -> None:
        """Called right before the backend is told to do something: a turn that slept may find that its lease is gone.

        What it read before is then no more what the rows say. A turn that takes long keeps its lease by this. Raises
        LeaseLost.
        """
        asked_at = time.monotonic()
        if asked_at - self.memory.sure_at > _SURE_SECONDS:
            leases.renew(self.cluster_id, self.epoch, now=clock.now())
            self.memory.sure_at = asked_at

    def observe(self, job: UUID, sightings: Sequence[Sighting], now: datetime) -> bool:
        """Take down what was seen of one job's pods."""
        self.require()
        return services.observe(self.cluster_id, self.epoch, job, sightings, address_of=self.runner.address, now=now)


def key_of(pod: Pod) -> PodKey:
    """The backend's name of a pod."""
    job = pod.job
    return PodKey(job=job.uid.hex, task=pod.task, index=pod.index, attempt=pod.attempt, tenant=job.tenant.slug)


def take_down(hold: Hold, picture: Picture, *, now: datetime) -> bool:
    """Record what is new about pods, of all that is not over. Returns whether anything was."""
    memory = hold.memory
    found = hold.backend.observe(memory.cursor)
    pods = of_their_tenants(hold, found.pods, picture.tenant_of)
    live = {o.key: pod for o in pods if (pod := _row_of(o.key, picture))}
    if found.complete:
        memory.seen.clear()
    memory.seen.update(live)
    news = [o for o in pods if o.key in live and o.phase != live[o.key].phase]
    if found.complete:
        news += _missing(picture.pods(), live, now)
    by_job: dict[str, list[Sighting]] = defaultdict(list)
    for observation in sorted(news, key=lambda o: o.at):
        by_job[observation.key.job].append(sighting(observation))
    changed = False
    for job, sightings in by_job.items():
        changed |= hold.observe(UUID(job), sightings, now)
    _forget_ended(hold, pods, live)
    memory.cursor = found.cursor
    return changed


def of_their_tenants(
    hold: Hold, found: Sequence[Observation], tenant_of: Callable[[str], str]
) -> Sequence[Observation]:
    """Without pods that others made under the names of a tenant's. `tenant_of`: whose a job is; empty: it is over."""
    tenancy = hold.backend.tenancy
    if tenancy is None:
        return found
    return [o for o in found if not (tenant := tenant_of(o.key.job)) or tenancy.owns(tenant, o.key)]


def _row_of(key: PodKey, picture: Picture) -> Pod | None:
    return picture.find(key.job, key.task, key.index, key.attempt)


def _missing(pods: Iterable[Pod], seen: Container[PodKey], now: datetime) -> list[Observation]:
    """Pods that were on their way or at work and that the backend knows nothing of any more."""
    lost = "The backend does not know this pod any more."
    return [
        Observation(key=key, phase=PodPhase.LOST, at=now, reason="Vanished", message=lost)
        for pod in pods
        if pod.phase in (PodPhase.PREPARING, PodPhase.RUNNING)
        and not pod.job.is_adopted
        and (key := key_of(pod)) not in seen
    ]


def _forget_ended(hold: Hold, seen: Sequence[Observation], live: dict[PodKey, Pod]) -> None:
    """Ends that are in the rows need not be told again; those recorded just now are forgotten next time.

    Had another controller the lease since the rows were read, what is not in them might be new instead of over.
    """
    ended = [o.key for o in seen if o.phase.is_final and o.key not in live]
    if ended:
        hold.require()
        hold.backend.forget(ended)
        hold.memory.seen.difference_update(ended)


def sighting(o: Observation) -> Sighting:
    """What was observed, as it is recorded."""
    return Sighting(
        task=o.key.task,
        index=o.key.index,
        attempt=o.key.attempt,
        phase=o.phase,
        at=o.at,
        reason=o.reason,
        message=o.message,
        exit_code=o.exit_code,
    )
