"""Maps phases to OpenPAI's states. A terminated job is FAILED if one of its pods failed, otherwise STOPPED."""

from collections.abc import Iterable

from django.db.models import Q

from hekla.apps.jobs.models import Job, Pod
from hekla.domain.phases import GangPhase, JobPhase, PodPhase

USER_STOP = -220
"""OpenPAI's exit code of stopped jobs and tasks."""

_JOB = {
    JobPhase.PENDING: ("WAITING", "AttemptPreparing"),
    JobPhase.RUNNING: ("RUNNING", "AttemptRunning"),
    JobPhase.RESTARTING: ("RUNNING", "AttemptCompleted"),
    JobPhase.ABORTING: ("STOPPING", "AttemptDeleting"),
    JobPhase.ABORTED: ("STOPPED", "Completed"),
    JobPhase.COMPLETING: ("RUNNING", "AttemptDeleting"),
    JobPhase.COMPLETED: ("SUCCEEDED", "Completed"),
    JobPhase.TERMINATING: ("STOPPING", "AttemptDeleting"),
    JobPhase.TERMINATED: ("STOPPED", "Completed"),
    JobPhase.FAILED: ("FAILED", "Completed"),
}
_BY_A_FAILURE = {JobPhase.TERMINATING: "RUNNING", JobPhase.TERMINATED: "FAILED"}
_POD = {
    PodPhase.RUNNING: "RUNNING",
    PodPhase.SUCCEEDED: "SUCCEEDED",
    PodPhase.FAILED: "FAILED",
    PodPhase.LOST: "FAILED",
}
STATES = sorted({state for state, _ in _JOB.values()})


def state_of(phase: str, *, has_failed_pod: bool) -> str:
    """The state of a job in this phase. `has_failed_pod`: a pod failed by itself, without being stopped."""
    kind = JobPhase(phase)
    return _BY_A_FAILURE[kind] if has_failed_pod and kind in _BY_A_FAILURE else _JOB[kind][0]


def sub_state_of(job: Job) -> str:
    """The state in OpenPAI's framework controller."""
    if job.phase == JobPhase.PENDING and job.gang_phase == GangPhase.PENDING:
        return "AttemptCreationPending"
    return _JOB[JobPhase(job.phase)][1]


def matching(states: Iterable[str]) -> Q:
    """A filter for jobs in one of these states. The queryset needs the annotation `has_failed_pod`."""
    wanted, query = set(states), Q(pk__in=())
    for phase, (state, _) in _JOB.items():
        if phase not in _BY_A_FAILURE:
            query |= Q(phase=phase.value) if state in wanted else Q(pk__in=())
            continue
        for failed, found in ((True, _BY_A_FAILURE[phase]), (False, state)):
            query |= Q(phase=phase.value, has_failed_pod=failed) if found in wanted else Q(pk__in=())
    return query


def pod_state(pod: Pod | None) -> str:
    """The state of a replica by its last pod; WAITING without a pod."""
    if pod is None:
        return "WAITING"
    if pod.stopping and pod.phase == PodPhase.FAILED:
        return "STOPPED"
    return _POD.get(PodPhase(pod.phase), "WAITING")


def exit_code(state: str, pods: Iterable[Pod]) -> int | None:
    """The exit code of a job or a replica in this state; None before the end.

    For FAILED it is the exit code of the first pod that failed by itself, or -1.
    """
    if state in ("SUCCEEDED", "STOPPED"):
        return 0 if state == "SUCCEEDED" else USER_STOP
    if state != "FAILED":
        return None
    first = first_failure(pods)
    return first.exit_code if first and first.exit_code is not None else -1


def first_failure(pods: Iterable[Pod]) -> Pod | None:
    """The first pod that failed by itself (not because it was stopped), or None."""
    failed = [pod for pod in pods if pod.phase in (PodPhase.FAILED, PodPhase.LOST) and not pod.stopping]
    return min(failed, key=lambda pod: pod.finished_at or pod.created_at, default=None)
