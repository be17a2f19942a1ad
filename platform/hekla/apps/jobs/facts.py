"""Converts rows to the inputs of the lifecycle."""

from collections.abc import Iterable
from functools import lru_cache, partial
from uuid import UUID

from django.conf import settings
from django.db import transaction

from hekla.apps.jobs.models import Job, Pod
from hekla.domain.addresses import Replica
from hekla.domain.errors import HeklaError, Invalid, Problem
from hekla.domain.jobspec import JobSpec
from hekla.domain.lifecycle import RETRIED, JobFacts, PodFacts
from hekla.domain.phases import GangPhase, JobPhase, PodPhase
from hekla.domain.stored_specs import read_leniently

MAX_FAULT = 300
"""The length of the description of a fault."""


def spec_of(job: Job) -> JobSpec:
    """The specification of the job. It is parsed once per committed revision, and cached.

    If the stored one is no longer valid (see `spec_fault`), its valid parts, which must not be stored again.
    """
    return _stored(job)[0]


def spec_fault(job: Job) -> str:
    """Why the stored specification is no longer valid; empty if it is valid."""
    return _stored(job)[1]


def valid_spec(job: Job) -> JobSpec:
    """The specification, to store a changed copy of it or to start pods from it. Raises Invalid."""
    spec, fault = _stored(job)
    if fault:
        raise Invalid([Problem("", fault)])
    return spec


def read_specs(jobs: Iterable[Job]) -> None:
    """Cache the specifications of these jobs with one query, for rows that were read without the specification."""
    unknown = {job.pk: job for job in jobs if not _cached_spec(job.uid, job.revision)}
    for pk, spec in Job.objects.filter(pk__in=unknown).values_list("pk", "spec") if unknown else ():
        unknown[pk].spec = spec
        spec_of(unknown[pk])


def _stored(job: Job) -> tuple[JobSpec, str]:
    """The specification, and why it is not valid. An invalid one is parsed each time: its plugin may work again.

    It enters the cache when the transaction that read it is committed. Otherwise a change that is rolled back could
    leave its specification there, under the revision that the next change gets.
    """
    if job.spec_in_hand is not None:
        return job.spec_in_hand, ""
    if cached := _cached_spec(job.uid, job.revision):
        return cached[0], ""
    if job.parsed_spec is None or job.parsed_spec[0] != job.revision:
        try:
            job.parsed_spec = job.revision, JobSpec.parse(job.spec)
        except Exception as error:  # any: plugins take part
            return read_leniently(job.spec, job.name), describe_fault(error)
        transaction.on_commit(partial(_cache, job.uid, *job.parsed_spec))
    return job.parsed_spec[1], ""


def describe_fault(error: Exception) -> str:
    """An error for the page of the job: what is wrong, and its kind if it was not foreseen."""
    text = error.message if isinstance(error, HeklaError) else f"{type(error).__name__}: {error}"
    return text[:MAX_FAULT]


@lru_cache(maxsize=20_000)
def _cached_spec(_uid: UUID, _revision: int) -> list[JobSpec]:
    return []


def _cache(uid: UUID, revision: int, spec: JobSpec) -> None:
    _cached_spec(uid, revision)[:] = [spec]


def job_facts(job: Job) -> JobFacts:
    """The job as input of the lifecycle."""
    return JobFacts(
        spec=spec_of(job),
        phase=JobPhase(job.phase),
        gang_phase=GangPhase(job.gang_phase),
        version=job.version,
        retry_count=job.retry_count,
        deadline_at=job.deadline_at,
        restart_at=job.restart_at,
        restart_backoff=settings.RESTART_BACKOFF,
    )


def is_wanted(job: Job, pod: Pod) -> bool:
    """Whether the job has this replica at its current size."""
    return any(task.name == pod.task and pod.index < task.replicas for task in spec_of(job).tasks)


def replicas(job: Job) -> list[tuple[str, int]]:
    """Every replica as (task, index), in the order of the specification."""
    return [(task.name, index) for task in spec_of(job).tasks for index in range(task.replicas)]


def replica_of(job: Job, task: str, index: int, slot: int) -> Replica:
    """A replica of the job, from which backends make addresses."""
    return Replica(job.uid.hex, job.name, task, index, slot)


def reserved_slots(job: Job) -> dict[tuple[str, int], int]:
    """The slots that are reserved for replicas, with or without pods."""
    return dict(zip(replicas(job), job.reserved_slots, strict=False))


def pod_facts(pod: Pod) -> PodFacts:
    """One attempt as input of the lifecycle."""
    phase = PodPhase(pod.phase)
    return PodFacts(
        task=pod.task,
        index=pod.index,
        attempt=pod.attempt,
        version=pod.version,
        phase=phase,
        stopping=pod.stopping,
        exit_code=pod.exit_code,
        evicted=pod.evicted,
        retried=pod.stop_reason == RETRIED,
        since=pod.finished_at or pod.started_at or pod.created_at,
    )


def all_pod_facts(pods: Iterable[Pod]) -> list[PodFacts]:
    """Several attempts as input of the lifecycle."""
    return [pod_facts(pod) for pod in pods]
