"""Display the queues of a cluster in it, for users who create pods there themselves and name queues.

The displayed state follows from the rows. Changes of a queue are displayed at once, its usage every ten seconds.
"""

import logging
import time
from collections import Counter
from collections.abc import Iterable, Sequence

from hekla.apps.clusters.models import Cluster
from hekla.apps.jobs.facts import spec_of
from hekla.apps.jobs.models import Job, Pod
from hekla.apps.queues import selectors as queues
from hekla.apps.queues.models import Queue
from hekla.backends.base import BackendError
from hekla.backends.external_pods import DisplayedQueue, DisplayedQueues
from hekla.controller.delegated import queue_order
from hekla.controller.lease_context import LeaseContext
from hekla.controller.state import DisplayedQueueState
from hekla.domain.phases import PLACED_POD_PHASES, GangPhase
from hekla.domain.resources import Resources
from hekla.scheduling.cache import ClusterCache

log = logging.getLogger(__name__)
EVERY_SECONDS = 10.0


def display_queues(cluster: Cluster, lease: LeaseContext, cache: ClusterCache) -> None:
    """Display the queues if the configuration says so; otherwise delete those displayed before."""
    facet = lease.backend.displayed_queues
    state = lease.state.displayed_queues
    if state.by is not facet:
        if not _has_left(lease, state.by, facet):
            return
        state = lease.state.displayed_queues = DisplayedQueueState(by=facet)
    if facet is None or not facet.enabled:
        return
    known = queues.of_cluster(cluster)
    stamp = [(queue_order(queue), queue.state) for queue in known]
    if stamp == state.stamp and time.monotonic() - state.at < EVERY_SECONDS:
        return
    state.stamp, state.at = stamp, time.monotonic()
    _display(lease, facet, _displayed_queues(known, cache))


def _has_left(lease: LeaseContext, before: DisplayedQueues | None, now: DisplayedQueues | None) -> bool:
    """Delete the displayed queues if they are no longer wanted. Returns whether that is done.

    A new process does not know the facet that displayed them, so it uses the present one.
    """
    if now is not None and now.enabled:
        return True
    last = before or now
    return last is None or _display(lease, last, [])


def _display(lease: LeaseContext, facet: DisplayedQueues, queues: Sequence[DisplayedQueue]) -> bool:
    """Display these queues. Returns whether that succeeded; a failure is logged when it begins, and blocks nothing."""
    state, problem = lease.state.displayed_queues, ""
    try:
        facet.display(queues, heartbeat=lease.ensure_leader)
    except BackendError as error:
        problem = str(error)
    if problem and problem != state.problem:
        log.warning("the queues cannot be shown in the cluster, will try again: %s", problem)
    state.problem = problem
    return not problem


def _displayed_queues(known: Iterable[Queue], cache: ClusterCache) -> list[DisplayedQueue]:
    gangs: Counter[tuple[int, str]] = Counter()
    held: dict[int, Resources] = {}
    for job, pods in cache.jobs():
        gangs[job.queue_id, job.gang_phase] += not job.is_final
        held[job.queue_id] = held.get(job.queue_id, Resources()) + _held(job, pods)
    return [
        DisplayedQueue(
            queue_order(queue),
            is_open=queue.is_open,
            gangs={phase: gangs[queue.pk, phase] for phase in GangPhase},
            allocated=held.get(queue.pk, Resources()).quantities(),
        )
        for queue in known
    ]


def _held(job: Job, pods: Iterable[Pod]) -> Resources:
    """The resources that the job's pods hold on nodes."""
    placed, total = Counter(pod.task for pod in pods if pod.phase in PLACED_POD_PHASES), Resources()
    for task, count in placed.items():
        total += (spec_of(job).task(task).request + {"pods": 1.0}) * count
    return total
