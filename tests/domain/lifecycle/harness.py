"""A test harness for the lifecycle: it applies outcomes like the services do, and changes the phases of pods."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime

from hekla.domain.jobspec import JobSpec
from hekla.domain.lifecycle import (
    RETRIED,
    ActionTarget,
    JobFacts,
    JobOutcome,
    PodFacts,
    PodRef,
    Stimulus,
    advance,
    resolve,
    stimuli_of,
)
from hekla.domain.lifecycle.facts import Slot
from hekla.domain.phases import GangPhase, PodPhase
from hekla.domain.policies import LifecycleAction
from hekla.domain.scaling import JobScale, resize


def spec(*tasks: dict, **fields) -> JobSpec:
    """A job of these tasks; tasks get default names and commands."""
    documents = [{"name": f"task{number}", "command": ["true"], **task} for number, task in enumerate(tasks)]
    return JobSpec.parse({"name": "job", "tasks": documents, **fields})


class JobHarness:
    """A job with its pods. All changes go through `resolve` and `advance`."""

    def __init__(self, job_spec: JobSpec, **facts) -> None:
        self.job = JobFacts(job_spec, **facts)
        self.now = datetime(2030, 1, 1, tzinfo=UTC)
        self.pods: dict[PodRef, PodFacts] = {}
        self.last: JobOutcome | None = None

    @property
    def phase(self) -> str:
        return str(self.job.phase)

    def do(self, action: LifecycleAction, target: ActionTarget | None = None, *, by_person: bool = False) -> JobOutcome:
        outcome = advance(self.job, list(self.pods.values()), action, target, by_person=by_person, now=self.now)
        for ref in outcome.stop:
            self.pods[ref] = replace(self.pods[ref], stopping=True, retried=outcome.reason == RETRIED)
        for ref in outcome.create:
            assert ref not in self.pods
            self.pods[ref] = PodFacts(ref.task, ref.index, ref.attempt, outcome.version)
        self.job = replace(
            self.job,
            phase=outcome.phase,
            gang_phase=outcome.gang_phase,
            version=outcome.version,
            retry_count=outcome.retry_count,
            restart_at=outcome.restart_at,
        )
        self.last = outcome
        return outcome

    def sync(self) -> JobOutcome:
        return self.do(LifecycleAction.SYNC_JOB)

    def admit(self) -> JobOutcome:
        """The scheduler admits the gang."""
        if self.job.gang_phase is GangPhase.PENDING:
            self.job = replace(self.job, gang_phase=GangPhase.INQUEUE)
        return self.sync()

    def report(self, phase: PodPhase, refs: Iterable[PodRef], exit_code: int | None = None) -> None:
        """The backend reports this phase of these pods."""
        for ref in refs:
            self.pods[ref] = replace(self.pods[ref], phase=phase, exit_code=exit_code, since=self.now)
            for stimulus in stimuli_of(self.job, list(self.pods.values()), [self.pods[ref]]):
                self.hear(stimulus)

    def hear(self, stimulus: Stimulus) -> None:
        self.do(resolve(self.job, stimulus), stimulus.target)

    def evict(self, ref: PodRef) -> None:
        """The scheduler evicts this pod."""
        self.pods[ref] = replace(self.pods[ref], stopping=True, evicted=True)
        self.sync()

    def scale(self, **size) -> None:
        """A person resizes the job."""
        self.job = replace(self.job, spec=resize(self.job.spec, JobScale.parse(size)))
        self.sync()

    def stopped_pods_end(self) -> None:
        for pod in [pod for pod in self.pods.values() if pod.stopping and pod.is_alive]:
            self.report(PodPhase.FAILED, [pod.ref], exit_code=143)

    def latest(self, task: str, index: int) -> PodRef:
        return max(ref for ref in self.pods if ref.slot == Slot(task, index))

    def all_latest(self) -> list[PodRef]:
        return [self.latest(slot.task, slot.index) for slot in sorted({ref.slot for ref in self.pods})]

    def start(self) -> "JobHarness":
        """Admit the gang, and report all pods as running."""
        self.admit()
        self.report(PodPhase.RUNNING, self.all_latest())
        return self
