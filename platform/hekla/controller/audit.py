"""The audit: compares the event log with the rows, and the rows with the backends.

Rows and backends change while they are read. So differences are checked again a little later, and only those found both
times are reported.
"""

import time
from collections import Counter
from collections.abc import Iterator
from datetime import timedelta

from hekla.apps.clusters import selectors as clusters
from hekla.apps.clusters.models import Cluster
from hekla.apps.jobs import audit as rows
from hekla.apps.jobs import selectors as jobs
from hekla.apps.jobs.models import Job, Pod
from hekla.backends.base import BackendError, Inventory, PodKey
from hekla.controller.backends import backend_of
from hekla.controller.observations import key_of
from hekla.domain.phases import PodPhase
from hekla.lib import clock

AGAIN_AFTER_SECONDS = 3.0
_AT_WORK = (PodPhase.PREPARING, PodPhase.RUNNING)
_CLEANED_WITHIN = timedelta(minutes=10)


def findings(*, again_after_seconds: float = AGAIN_AFTER_SECONDS) -> list[str]:
    """The differences, one sentence each; empty if log, rows and backends agree."""
    found = _at_backends()
    if found:
        time.sleep(again_after_seconds)
        again = _at_backends()
        found = [sentence for sentence in found if sentence in again]
    return [*rows.findings(), *found]


def _at_backends() -> list[str]:
    return [f"Cluster {cluster}: {text}" for cluster in clusters.all_clusters() for text in _at(cluster)]


def _at(cluster: Cluster) -> Iterator[str]:
    backend = backend_of(cluster)
    try:
        reported, there = {pod.key for pod in backend.observe(None).pods}, backend.inventory()
    except BackendError as error:
        yield f"it cannot be looked at: {error}"
        return
    yield from _missing(cluster, reported)
    yield from _unexpected(cluster, there)
    yield from _left_over(cluster, there)


def _missing(cluster: Cluster, reported: set[PodKey]) -> Iterator[str]:
    for pod in jobs.unfinished_pods(cluster.pk):
        if pod.phase in _AT_WORK and not pod.job.is_external and key_of(pod) not in reported:
            yield f"{_name(key_of(pod))} is {pod.phase} by its row, and nothing of it is there."


def _unexpected(cluster: Cluster, there: Inventory) -> Iterator[str]:
    """Pods that run without a row, after their end, or in several attempts of one replica."""
    known = {key_of(pod): pod for pod in _pods_of(cluster, there)}
    for key in sorted(there.alive, key=lambda key: key.name):
        pod = known.get(key)
        if pod is None:
            yield f"{_name(key)} is at work, and there is no row of it."
        elif pod.is_final:
            yield f"{_name(key)} is at work, though by its row it {pod.phase}."
    for (job, task, index), count in Counter((key.job, key.task, key.index) for key in there.alive).items():
        if count > 1:
            yield f"{count} attempts of {task}-{index} of job {job} are at work at one time."


def _pods_of(cluster: Cluster, there: Inventory) -> list[Pod]:
    owners = {job.pk: job for job in jobs.by_uids(cluster.pk, {key.job for key in there.alive})}
    pods = jobs.pods_of(list(owners))
    for pod in pods:
        pod.job = owners[pod.job_id]
    return pods


def _left_over(cluster: Cluster, there: Inventory) -> Iterator[str]:
    """What remains of deleted jobs, or of jobs without a row."""
    known: dict[str, Job] = {job.uid.hex: job for job in jobs.by_uids(cluster.pk, there.logged | there.present)}
    for uid in sorted(there.logged | there.present):
        job = known.get(uid)
        if job is None:
            yield f"something of job {uid} is there, and there is no row of it."
        elif job.logs_purged_at:
            yield f"logs of job {job} ({uid}) are there, though they were purged."
        elif job.cleaned_at and uid in there.present:
            yield f"something of job {job} ({uid}) is there, though it was deleted and cleaned."
    late = clock.now() - _CLEANED_WITHIN
    for job in jobs.to_clean(cluster.pk, limit=1000):
        if job.deleted_at and job.deleted_at < late:
            yield f"job {job} ({job.uid.hex}) was deleted, and what is attached to it does not go."


def _name(key: PodKey) -> str:
    return f"{key.task}-{key.index} (attempt {key.attempt}) of job {key.job}"
