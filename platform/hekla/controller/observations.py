"""Record the backend's observations job by job, and pods that have vanished from it."""

import logging
from collections import defaultdict
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from datetime import datetime
from functools import partial

from hekla.apps.jobs.models import Pod
from hekla.apps.jobs.services.observations import Sighting
from hekla.backends.base import Observation, PodKey
from hekla.controller.lease_context import LeaseContext
from hekla.domain.phases import PodPhase
from hekla.scheduling.cache import ClusterCache

log = logging.getLogger(__name__)


def key_of(pod: Pod) -> PodKey:
    """The key of a pod at the backend."""
    job = pod.job
    return PodKey(job=job.uid.hex, task=pod.task, index=pod.index, attempt=pod.attempt, tenant=job.tenant.slug)


def record_observations(lease: LeaseContext, cache: ClusterCache, *, now: datetime) -> bool:
    """Record changes of unfinished pods. Returns whether there were any."""
    state = lease.state
    found = lease.backend.observe(state.cursor)
    pods = of_their_tenants(lease, found.pods, cache.tenant_of)
    live = {o.key: pod for o in pods if (pod := _row_of(o.key, cache))}
    if found.complete:
        state.known_pods.clear()
    state.known_pods.update(live)
    _record_preparation(lease, [(live[o.key], o.message[:2000]) for o in pods if o.key in live and _prepares(o, live)])
    news = [o for o in pods if o.key in live and o.phase != live[o.key].phase]
    if found.complete:
        news += _missing(cache.pods(), live, now)
    by_job: dict[str, list[Sighting]] = defaultdict(list, {} if found.complete else state.postponed)
    state.postponed = {}
    for observation in sorted(news, key=lambda o: o.at):
        by_job[observation.key.job].append(sighting(observation))
    changed = False
    for uid, sightings in by_job.items():
        changed |= _record(lease, cache, uid, sightings, now)
    _forget_ended(lease, pods, live)
    state.cursor = found.cursor
    return changed


def _prepares(o: Observation, live: Mapping[PodKey, Pod]) -> bool:
    """Whether there is a new message about a pod that prepares, for example about the pull of its image."""
    return o.phase == PodPhase.PREPARING == live[o.key].phase and o.message[:2000] != live[o.key].message


def _record_preparation(lease: LeaseContext, messages: Sequence[tuple[Pod, str]]) -> None:
    """Record messages about pods that prepare. They are no events: there may be many of them."""
    if messages:
        lease.note_preparation({pod.pk: message for pod, message in messages})
    for pod, message in messages:
        pod.message = message


def _record(lease: LeaseContext, cache: ClusterCache, uid: str, sightings: list[Sighting], now: datetime) -> bool:
    """Record observations of one job's pods, or postpone them if the job is at fault. Returns whether it changed."""
    job = cache.job(uid)
    if job is None:
        return False
    changed = cache.faults.attempt(job, "observe", partial(lease.observe, job.uid, sightings, now), now)
    if changed is None:
        lease.state.postponed[uid] = sightings
    return bool(changed)


def of_their_tenants(
    lease: LeaseContext, found: Sequence[Observation], tenant_of: Callable[[str], str]
) -> Sequence[Observation]:
    """The observations without pods that other tenants created under a tenant's names.

    `tenant_of`: the tenant of a job; empty if the job has ended.
    """
    tenancy = lease.backend.tenancy
    if tenancy is None:
        return found
    return [o for o in found if not (tenant := tenant_of(o.key.job)) or tenancy.owns(tenant, o.key)]


def _row_of(key: PodKey, cache: ClusterCache) -> Pod | None:
    return cache.find(key.job, key.task, key.index, key.attempt)


def _missing(pods: Iterable[Pod], reported: Container[PodKey], now: datetime) -> list[Observation]:
    """A LOST observation for each preparing or running pod that the backend no longer reports."""
    lost = "The backend does not know this pod any more."
    return [
        Observation(key=key, phase=PodPhase.LOST, at=now, reason="Vanished", message=lost)
        for pod in pods
        if pod.phase in (PodPhase.PREPARING, PodPhase.RUNNING)
        and not pod.job.is_external
        and (key := key_of(pod)) not in reported
    ]


def _forget_ended(lease: LeaseContext, reported: Sequence[Observation], live: dict[PodKey, Pod]) -> None:
    """Let the backend forget pods whose ends are in the rows; ends recorded just now are forgotten next time.

    The lease is checked first: if another controller has written since the rows were read, a pod without a live row
    might be new instead of ended.
    """
    ended = [o.key for o in reported if o.phase.is_final and o.key not in live]
    if ended:
        lease.ensure_leader()
        lease.backend.forget(ended)
        lease.state.known_pods.difference_update(ended)


def sighting(o: Observation) -> Sighting:
    """The observation in the form in which the jobs app records it."""
    return Sighting(
        task=o.key.task,
        index=o.key.index,
        attempt=o.key.attempt,
        phase=o.phase,
        at=o.at,
        reason=o.reason,
        message=o.message,
        exit_code=o.exit_code,
        cpus=o.cpus,
    )
