"""One turn of one cluster.

Turns of a cluster never overlap: in a process a lock keeps them apart (who comes meanwhile asks for one more), between
processes the lease does. What a process remembers between turns (`Memory`, the last number of the log that it has
acted on) only saves work: a new process starts without it and comes to the same.
"""

import logging
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from threading import Event, Lock

from django.conf import settings
from django.db import InterfaceError, InternalError, OperationalError

from hekla.apps.clusters import leases
from hekla.apps.clusters import selectors as clusters
from hekla.apps.clusters.models import Cluster
from hekla.apps.event_log import selectors as event_log
from hekla.apps.jobs import services
from hekla.apps.jobs.facts import job_facts
from hekla.apps.jobs.models import Job
from hekla.apps.usage import services as usage
from hekla.backends.base import BackendError
from hekla.controller import (
    adopted,
    decisions,
    entrusted,
    instruments,
    nodes,
    observations,
    removal,
    shown_queues,
    sparing,
    tenants,
    use,
)
from hekla.controller.backends import backend_of
from hekla.controller.carry_out import carry_out
from hekla.controller.holder import holder
from hekla.controller.instruments import TURN_SECONDS
from hekla.controller.observations import Hold, Memory
from hekla.domain.phases import GangPhase, JobPhase
from hekla.engine.audit import differences
from hekla.engine.decisions import Decisions, Fault
from hekla.engine.world import World
from hekla.lib import clock
from hekla.scheduling import policies
from hekla.scheduling.cache import Picture, Seen
from hekla.scheduling.snapshot import Snapshot

log = logging.getLogger(__name__)
_MAX_ROUNDS = 8
_NODES_EVERY = timedelta(seconds=10)
_LOOK_EVERY = timedelta(seconds=5)
_PURGE_EVERY = timedelta(minutes=1)
_SWEEP_EVERY = timedelta(minutes=5)


@dataclass
class Keeper:
    """What this process keeps about one cluster between turns. `rests`: none is under way here."""

    lock: Lock = field(default_factory=Lock)
    rests: Event = field(default_factory=Event)
    again: bool = False
    memory: Memory = field(default_factory=Memory)
    epoch: int | None = None
    acted_on: int = -1
    looked_at: datetime | None = None
    nodes_at: datetime | None = None
    measured_at: datetime | None = None
    thinned_at: datetime | None = None
    purged_at: datetime | None = None
    swept_at: datetime | None = None
    picture: Picture = field(default_factory=Picture)
    world: World = field(default_factory=World)
    faults: tuple[Fault, ...] = ()


_keepers: dict[int, Keeper] = {}
_keepers_lock = Lock()


def run(cluster: Cluster) -> None:
    """Turn the cluster once, and once more for each wish that came meanwhile."""
    keeper = _keeper(cluster.pk)
    keeper.again = True
    while keeper.again and keeper.lock.acquire(blocking=False):
        try:
            keeper.again = False
            keeper.rests.clear()
            with TURN_SECONDS.labels(cluster.name).time():
                _turn(cluster, keeper)
        except leases.LeaseLost:
            log.warning("cluster %s: another controller has taken over", cluster)
        except (OperationalError, InterfaceError, InternalError) as error:
            log.warning("cluster %s: no database now: %s", cluster, error)
        except BackendError as error:
            log.warning("cluster %s: its backend cannot answer now: %s", cluster, error)
        finally:
            keeper.rests.set()
            keeper.lock.release()


def look_again(cluster_id: int) -> bool:
    """Have one more turn of this cluster after the one that is under way here. Returns whether one is."""
    keeper = _keeper(cluster_id)
    keeper.again = True  # before the question: who turns looks at it after letting go
    return keeper.lock.locked()


def is_at_rest(cluster_id: int) -> bool:
    """Whether no turn of this cluster is under way here."""
    return not _keeper(cluster_id).lock.locked()


def wait_for_rest(cluster_id: int, seconds: float) -> None:
    """Until the turn is over that is under way here; for so long at most."""
    _keeper(cluster_id).rests.wait(seconds)


def _keeper(cluster_id: int) -> Keeper:
    with _keepers_lock:
        if cluster_id not in _keepers:
            _keepers[cluster_id] = Keeper()
        return _keepers[cluster_id]


def _turn(cluster: Cluster, keeper: Keeper) -> None:
    now = clock.now()
    epoch = leases.take(cluster, holder(), now=now)
    if epoch is None:
        return
    cluster = clusters.by_id(cluster.pk)  # whoever moves its pods takes the lease: from here on its row is as it is
    if epoch != keeper.epoch:
        keeper.epoch, keeper.memory, keeper.acted_on = epoch, Memory(), -1
        keeper.picture, keeper.world = Picture(), World()
    backend = backend_of(cluster)
    hold = Hold(cluster.pk, epoch, backend, keeper.memory)
    adopted.follow(cluster, hold, now=now)
    if keeper.nodes_at is None or now - keeper.nodes_at > _NODES_EVERY:
        nodes.refresh(cluster, epoch, backend, now=now)
        keeper.nodes_at = now
    if backend.delegated is not None:
        entrusted.follow(cluster, hold, backend.delegated)
        _clean(keeper, hold, now)
        return
    keeper.picture.refresh(cluster, hold.memory.nominated, now=now)
    if hold.memory.cursor is None:
        _decide(cluster, keeper, hold, is_told=False)
    observations.take_down(hold, keeper.picture, now=now)
    _measure(keeper, hold, now)
    if _is_quiet(keeper, now):
        return
    last = event_log.last_number()
    _decide(cluster, keeper, hold)
    adopted.tell(hold, keeper.picture)
    shown_queues.show(cluster, hold, keeper.picture)
    _clean(keeper, hold, now)
    keeper.acted_on, keeper.looked_at = last, now


def _measure(keeper: Keeper, hold: Hold, now: datetime) -> None:
    """What pods use, where the backend can tell; and what was kept of it, thinned as it grows old."""
    metrics = hold.backend.metrics
    if metrics is None:
        return
    if keeper.measured_at is None or now - keeper.measured_at >= use.EVERY:
        use.measure(hold, metrics, keeper.picture.pods())
        keeper.measured_at = now
    if keeper.thinned_at is None or now - keeper.thinned_at >= use.THIN_EVERY:
        usage.thin(now=now)
        keeper.thinned_at = now


def _is_quiet(keeper: Keeper, now: datetime) -> bool:
    """Nothing happened since the last full look, and that is not long ago (time itself can make a difference)."""
    recently = keeper.looked_at is not None and now - keeper.looked_at < _LOOK_EVERY
    return recently and keeper.acted_on == event_log.last_number()


def _decide(cluster: Cluster, keeper: Keeper, hold: Hold, *, is_told: bool = True) -> None:
    """Rounds until one changes nothing.

    A new controller places what waits before it was told (`is_told`) how a hundred thousand pods are: those that ended
    meanwhile still take their room, so that what it places fits. Nothing else is done on such grounds.
    """
    for _ in range(_MAX_ROUNDS):
        if not _round(cluster, keeper, hold, is_told=is_told):
            return


def _round(cluster: Cluster, keeper: Keeper, hold: Hold, *, is_told: bool) -> bool:
    """Move jobs on, ask the engine, record, carry out. Returns whether there may be more to do."""
    now = clock.now()
    picture, memory = keeper.picture, hold.memory
    picture.refresh(cluster, memory.nominated, now=now)
    if moved := _sync_jobs(hold, picture, picture.stirred(now) if is_told else picture.unplaced(), now):
        picture.refresh(cluster, memory.nominated, now=now)
    taken = picture.snapshot(cluster)
    decided = _decisions(cluster, keeper, taken, memory, now)
    is_kept = is_told and sparing.forbids(hold, taken, decided, now=now)
    found = decisions.by_job(taken, decided)
    if is_kept:  # the others go on; whom to take the room from instead is asked next
        found = [one for one in found if not one.evictions]
    if not is_told:
        found = [one for one in found if decisions.only_places(one)]
    picture.doubt(decision.job_id for decision in found)
    recorded = services.commit(cluster.pk, hold.epoch, found, now=now)
    if is_told and not is_kept:
        memory.nominated = decisions.still_nominated(taken, decided, memory.nominated)
    picture.refresh(cluster, memory.nominated, now=now)
    tenants.keep(hold, picture)
    placed = {pod for one in found for pod in one.binds}
    carry_out(hold, [pod for pod in picture.ordered() if is_told or pod.pk in placed], now=now)
    return bool(moved or recorded or is_kept)


def _decisions(cluster: Cluster, keeper: Keeper, taken: Snapshot, memory: Memory, now: datetime) -> Decisions:
    """What the engine says."""
    state, policy = sparing.without(taken.state, memory), policies.in_force(cluster)
    decided = instruments.cycle(cluster.name, state, policy, now, world=keeper.world)
    _tell_faults(cluster, keeper, decided.faults)
    _check(cluster, keeper)
    return decided


def _tell_faults(cluster: Cluster, keeper: Keeper, faults: tuple[Fault, ...]) -> None:
    """What failed is told when it begins to fail, not at every decision."""
    for fault in faults:
        if fault not in keeper.faults:
            log.error("cluster %s: %s failed at %s: %s", cluster, fault.name, fault.point, fault.error)
    keeper.faults = faults


def _check(cluster: Cluster, keeper: Keeper) -> None:
    """Where that is asked for: hold what the engine keeps against a fresh look, and drop it if it is wrong."""
    if settings.CHECK_ENGINE and (found := differences(keeper.world)):
        log.error("cluster %s: what the engine kept is not what there is: %s", cluster, "; ".join(found[:10]))
        keeper.world = World()


def _sync_jobs(hold: Hold, picture: Picture, stirred: Iterable[Seen], now: datetime) -> bool:
    """Jobs that were let in get their pods; jobs on their way somewhere move on."""
    inside = (seen for seen in stirred if not (seen.job.is_adopted or _is_outside(seen.job, now)))
    due = [seen.job.pk for seen in inside if services.would_sync(seen.job, seen.pods, now)]
    picture.doubt(due)
    moved = [services.sync(hold.cluster_id, hold.epoch, pk, address_of=hold.runner.address, now=now) for pk in due]
    return any(moved)


def _is_outside(job: Job, now: datetime) -> bool:
    """It waits to be let in, and may, or is over."""
    waits = job.gang_phase == GangPhase.PENDING and job.phase == JobPhase.PENDING
    return job.is_final or (waits and not job_facts(job).is_out_of_time(now))


def _clean(keeper: Keeper, hold: Hold, now: datetime) -> None:
    """What is deleted leaves nothing behind but its logs and history, and those not for ever."""
    removal.clean(hold, now=now)
    if keeper.purged_at is None or now - keeper.purged_at > _PURGE_EVERY:
        keeper.purged_at = None if removal.purge(hold, now=now) else now
    if keeper.swept_at is None or now - keeper.swept_at > _SWEEP_EVERY:
        keeper.swept_at = now  # also where it fails: it is expensive
        removal.sweep(hold)


def forget_all() -> None:
    """Drop what this process keeps between turns, as a new process would."""
    with _keepers_lock:
        _keepers.clear()
