"""Converts rows to the facts from which `evaluate_flow` computes the progress of a flow."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from uuid import UUID

from hekla.apps.flows.models import Flow, FlowStep
from hekla.apps.jobs import facts as job_facts
from hekla.apps.jobs import selectors as jobs
from hekla.apps.jobs.models import Job, Pod
from hekla.domain.flow_progress import StepFacts, TaskFacts
from hekla.domain.flows import FlowSpec
from hekla.domain.phases import FlowPhase, JobPhase, PodPhase


def spec_of(flow: Flow) -> FlowSpec:
    """The spec of a flow. It never changes, so it is parsed once and cached."""
    cached = _cached_spec(flow.uid)
    if not cached:
        cached.append(FlowSpec.parse(flow.spec))
    return cached[0]


@lru_cache(maxsize=2_000)
def _cached_spec(_uid: UUID) -> list[FlowSpec]:
    return []


def facts_of(flow: Flow, steps: Sequence[FlowStep], pods: Mapping[int, Sequence[Pod]]) -> dict[str, StepFacts]:
    """The facts of the steps that have started, by name. `pods`: by row id of their job."""
    return {
        step.name: StepFacts(_phase(step.job), _tasks(step.job, pods.get(step.job.pk, ()))) if step.job else _gone(flow)
        for step in steps
        if step.started_at is not None
    }


def _gone(flow: Flow) -> StepFacts:
    """The facts of a job whose row is gone: it completed, unless the flow failed or was stopped."""
    goes_on = flow.phase in (FlowPhase.PENDING, FlowPhase.RUNNING, FlowPhase.SUCCEEDED)
    return StepFacts(JobPhase.COMPLETED if goes_on else JobPhase.TERMINATED)


def current_pods(flows: Iterable[tuple[Flow, Sequence[FlowStep]]]) -> dict[int, list[Pod]]:
    """The last attempt of each replica, by job (row id), for running flows with probes; ended jobs are left out."""
    probed = [
        step.job.pk
        for flow, steps in flows
        if any(wanted.probes for wanted in spec_of(flow).steps)
        for step in steps
        if step.job is not None and not step.job.is_final
    ]
    last = {(pod.job_id, pod.task, pod.index): pod for pod in (jobs.pods_of(probed) if probed else ())}
    found: dict[int, list[Pod]] = {}
    for pod in last.values():
        found.setdefault(pod.job_id, []).append(pod)
    return found


def _phase(job: Job) -> JobPhase:
    """The job's phase; an aborted job that was deleted counts as terminated, because it cannot be resumed."""
    phase = JobPhase(job.phase)
    return JobPhase.TERMINATED if job.deleted_at is not None and phase is JobPhase.ABORTED else phase


def _tasks(job: Job, pods: Sequence[Pod]) -> dict[str, TaskFacts]:
    """The facts of each task, by the job's current size, which may differ from the submitted one."""
    phases = Counter((pod.task, pod.phase) for pod in pods if not pod.stopping)
    return {
        task.name: TaskFacts(
            minimum=task.minimum or min(task.replicas, 1),
            running=phases[task.name, PodPhase.RUNNING.value],
            succeeded=phases[task.name, PodPhase.SUCCEEDED.value],
        )
        for task in (job_facts.spec_of(job).tasks if pods else ())
    }
