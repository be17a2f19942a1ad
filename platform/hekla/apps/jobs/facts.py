"""From rows to what the lifecycle works on."""

from collections.abc import Iterable
from functools import lru_cache
from uuid import UUID

from hekla.apps.jobs.models import Job, Pod
from hekla.domain.addresses import Replica
from hekla.domain.jobspec import JobSpec
from hekla.domain.lifecycle import JobFacts, PodFacts
from hekla.domain.phases import GangPhase, JobPhase, PodPhase


def spec_of(job: Job) -> JobSpec:
    """What was asked for. It is read once for each revision that was committed."""
    if job.spec_in_hand is not None:
        return job.spec_in_hand
    cached = _cached_spec(job.uid, job.revision)
    if not cached:
        cached.append(JobSpec.parse(job.spec))
    return cached[0]


def read_specs(jobs: Iterable[Job]) -> None:
    """Read the specifications of these that are not known yet together; they came without them from the database."""
    unknown = {job.pk: job for job in jobs if not _cached_spec(job.uid, job.revision)}
    for pk, spec in Job.objects.filter(pk__in=unknown).values_list("pk", "spec") if unknown else ():
        _cached_spec(unknown[pk].uid, unknown[pk].revision).append(JobSpec.parse(spec))


@lru_cache(maxsize=20_000)
def _cached_spec(_uid: UUID, _revision: int) -> list[JobSpec]:
    return []


def job_facts(job: Job) -> JobFacts:
    """The job as the lifecycle sees it."""
    return JobFacts(
        spec=spec_of(job),
        phase=JobPhase(job.phase),
        gang_phase=GangPhase(job.gang_phase),
        version=job.version,
        retry_count=job.retry_count,
        deadline_at=job.deadline_at,
    )


def is_wanted(job: Job, pod: Pod) -> bool:
    """Whether the job should have this replica, as large as it is now."""
    return any(task.name == pod.task and pod.index < task.replicas for task in spec_of(job).tasks)


def replicas(job: Job) -> list[tuple[str, int]]:
    """Every replica that was asked for, in the order of the specification."""
    return [(task.name, index) for task in spec_of(job).tasks for index in range(task.replicas)]


def replica_of(job: Job, task: str, index: int, slot: int) -> Replica:
    """A replica of the job, as backends make addresses of it."""
    return Replica(job.uid.hex, job.name, task, index, slot)


def reserved_slots(job: Job) -> dict[tuple[str, int], int]:
    """The slots that were set aside for replicas, pods or not."""
    return dict(zip(replicas(job), job.reserved_slots, strict=False))


def pod_facts(pod: Pod) -> PodFacts:
    """One attempt as the lifecycle sees it."""
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
        since=pod.finished_at or pod.started_at or pod.created_at,
    )


def all_pod_facts(pods: Iterable[Pod]) -> list[PodFacts]:
    """Several attempts as the lifecycle sees them."""
    return [pod_facts(pod) for pod in pods]
