"""Federated queues: predictions for each member queue, and moves of pending jobs to where they would start now.

Each cluster is queried in a thread with a connection of its own. So a slow cluster delays no caller beyond the timeout,
and no query sees uncommitted rows.
"""

import logging
import random
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import replace
from functools import partial

from django.db import connections

from hekla.apps.accounts.models import User
from hekla.apps.clusters import selectors as clusters
from hekla.apps.clusters.models import Cluster
from hekla.apps.event_log import selectors as event_log
from hekla.apps.jobs import selectors as jobs
from hekla.apps.jobs import services
from hekla.apps.jobs.facts import spec_of
from hekla.apps.jobs.models import Job
from hekla.apps.jobs.services import routing
from hekla.apps.queues import selectors as queues
from hekla.apps.queues.models import Queue
from hekla.apps.tenancy.models import Tenant
from hekla.domain.jobspec import JobSpec
from hekla.domain.routing import Feasibility, PlacementCandidate, rank_candidates
from hekla.lib import clock
from hekla.simulation import what_if
from hekla.simulation.what_if import StartVerdict

log = logging.getLogger(__name__)
PATIENCE_SECONDS = 10.0
"""How long a submission waits for the clusters, and once more for start times if none starts the job now."""
_MOVING_SECONDS = 2.0
_FIRST, _SAMPLE = 50, 50
_VAIN_SECONDS = 60.0
_failed_moves: dict[str, tuple[float, int, tuple[int, ...]]] = {}
"""The time of the last full check without a move, its last event, and its jobs.

The check is not repeated within `_VAIN_SECONDS`, unless something happens.
"""
_pool = ThreadPoolExecutor(max_workers=4, thread_name_prefix="federation")
_CHANCES = {
    StartVerdict.NOW: Feasibility.NOW,
    StartVerdict.WAITS: Feasibility.WAITS,
    StartVerdict.NEVER: Feasibility.NEVER,
}


def ask(
    spec: JobSpec, members: Sequence[Queue], *, tenant: Tenant, user: User, is_timed: bool = True
) -> list[PlacementCandidate]:
    """A candidate for each of these queues; UNANSWERED if its cluster did not answer in time.

    If the job starts nowhere now and `is_timed`, the start times are predicted too: that takes longest.
    """
    found = _candidates(spec, members, tenant, user, with_eta=False)
    if not is_timed or any(one.chance is Feasibility.NOW for one in found):
        return found
    waits = [queue for queue, one in zip(members, found, strict=True) if one.chance is Feasibility.WAITS]
    known = {one.queue: one for one in _candidates(spec, waits, tenant, user, with_eta=True)}
    timed = (known.get(one.queue, one) for one in found)
    return [one if new.chance is Feasibility.UNANSWERED else new for one, new in zip(found, timed, strict=True)]


def move_waiting() -> int:
    """Move jobs to where they would start now, within a time limit. Returns how many moved.

    Of a long list, the first jobs are checked and a random sample of the rest, so that none is left out forever.
    """
    began, number = time.monotonic(), event_log.last_number()
    waiting = tuple(jobs.movable().values_list("pk", flat=True))
    if not waiting or _would_fail_again(began, number, waiting):
        return 0
    rest, found = waiting[_FIRST:], list[bool | None]()
    for pk in [*waiting[:_FIRST], *random.sample(rest, min(_SAMPLE, len(rest)))]:
        found.append(_look(pk))
        if time.monotonic() > began + _MOVING_SECONDS:
            break
    if found.count(False) == len(waiting):
        _failed_moves["last"] = began, number, waiting
    return found.count(True)


def _would_fail_again(now: float, number: int, waiting: tuple[int, ...]) -> bool:
    at, *known = _failed_moves.get("last", (-_VAIN_SECONDS, 0, ()))
    return known == [number, waiting] and now - at < _VAIN_SECONDS


def _look(job_id: int) -> bool | None:
    """Whether the job moved; None if not all clusters answered."""
    job = jobs.movable().filter(pk=job_id).first()
    federated = job.placement.federated_queue if job else None
    if job is None or federated is None or job.cluster.leads_jobs or _starts_here(job):
        return False
    others = [queue for queue in queues.members_open_to(federated, job.tenant) if queue.cluster_id != job.cluster_id]
    candidates = rank_candidates(
        routing.prospects(spec_of(job), others, tenant=job.tenant, user=job.owner, is_timed=False)
    )
    if not candidates or candidates[0].chance is not Feasibility.NOW or candidates[0].evicts:
        return None if any(one.chance is Feasibility.UNANSWERED for one in candidates) else False
    best = next(queue for queue in others if queue.name == candidates[0].queue)
    here = PlacementCandidate(job.cluster.name, job.queue.name, Feasibility.WAITS, reasons=tuple(job.waiting))
    return services.move(job, best, rank_candidates([*candidates, here]), now=clock.now())


def _starts_here(job: Job) -> bool:
    return _is_turned(job.cluster) and what_if.starts_here(job)


def _is_turned(cluster: Cluster) -> bool:
    health = clusters.health(cluster)
    return not cluster.is_paused and (health is None or health.is_reachable)


def _candidates(
    spec: JobSpec, members: Sequence[Queue], tenant: Tenant, user: User, *, with_eta: bool
) -> list[PlacementCandidate]:
    find = partial(_prospect, spec, tenant, user, with_eta)
    futures = [_pool.submit(_answered, find, queue) for queue in members]
    done, _late = wait(futures, timeout=PATIENCE_SECONDS)
    both = zip(members, futures, strict=True)
    return [future.result() if future in done else _candidate(queue) for queue, future in both]


def _answered(find: Callable[[Queue], PlacementCandidate], queue: Queue) -> PlacementCandidate:
    try:
        return find(queue)
    except Exception:
        log.exception("cluster %s could not be asked", queue.cluster)
        return _candidate(queue)
    finally:
        connections.close_all()


def _candidate(queue: Queue) -> PlacementCandidate:
    return PlacementCandidate(queue.cluster.name, queue.name, Feasibility.UNANSWERED)


def _prospect(spec: JobSpec, tenant: Tenant, user: User, with_eta: bool, queue: Queue) -> PlacementCandidate:
    answer, load = what_if.predict_start(spec, queue, tenant=tenant, user=user, with_eta=with_eta)
    return replace(
        _candidate(queue),
        chance=_CHANCES[answer.verdict],
        evicts=answer.evicts.pods,
        earliest=answer.eta.earliest if answer.eta else None,
        latest=answer.eta.latest if answer.eta else None,
        load=load,
        reasons=answer.reasons,
    )
