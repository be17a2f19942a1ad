"""Shared by the matrices of events and actions: jobs with one policy each, and the events that can occur.

Events in pending and running jobs are in `test_matrix.py`, those in jobs that are restarting, ending or over in
`test_matrix_late.py`.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from tests.controller.conftest import World

from hekla.apps.clusters import leases
from hekla.apps.jobs import services
from hekla.apps.jobs.models import Job, Pod
from hekla.apps.jobs.services.decisions import EvictionReason, JobDecision
from hekla.apps.jobs.services.observations import Sighting
from hekla.controller.backends import backend_of
from hekla.controller.controllers import controllers
from hekla.controller.lease_context import identity
from hekla.domain.jobspec import JobSpec
from hekla.domain.phases import JobPhase, PodPhase
from hekla.domain.policies import LifecycleAction
from hekla.domain.scaling import JobScale
from hekla.lib import clock

WAIT_SECONDS = 600
CAUSES: dict[str, dict[str, Any]] = {
    "PodFailed": {"events": ["PodFailed"]},
    "any": {"events": ["*"]},
    "exit": {"exit_code": 143},
    "PodEvicted": {"events": ["PodEvicted"]},
    "TaskFailed": {"events": ["TaskFailed"]},
    "TaskCompleted": {"events": ["TaskCompleted"]},
    "PodPending": {"events": ["PodPending"], "timeout_seconds": WAIT_SECONDS},
    "Unknown": {"events": ["Unknown"]},
    "JobUpdated": {"events": ["JobUpdated"]},
}
PARTIAL = (LifecycleAction.RESTART_TASK, LifecycleAction.RESTART_POD, LifecycleAction.RESTART_PARTITION)
ENDS = {
    LifecycleAction.ABORT_JOB: (JobPhase.ABORTING, JobPhase.ABORTED),
    LifecycleAction.COMPLETE_JOB: (JobPhase.COMPLETING, JobPhase.COMPLETED),
    LifecycleAction.TERMINATE_JOB: (JobPhase.TERMINATING, JobPhase.TERMINATED),
}
"""The phase that a job enters by this action, and its final phase."""
ENDED_BY = {phase: action for action, phases in ENDS.items() for phase in phases}
FOR_EVER = 1e9
SECONDS = 300.0
State = tuple[str, int, int, dict[str, str]]
"""Phase, version, retries, and for each replica the last attempt: number, phase, and whether it is stopping."""


def task(name: str, seconds: float = FOR_EVER, **more: Any) -> dict[str, Any]:
    """A task whose pods run for this long, and end at once when stopped."""
    every = {"command": ["x"], "resources": {"cpu": "1"}, "grace_seconds": 0}
    return {**every, "name": name, "env": {"HEKLA_SIM_SECONDS": str(seconds)}, **more}


def stuck(**more: Any) -> dict[str, Any]:
    """A task whose pod fits no node."""
    return task("stuck", node_selector={"no": "where"}, **more)


@dataclass(frozen=True)
class Cell(ABC):
    """A job in a phase, with a policy of this cause and action."""

    phase: str
    cause: str
    action: LifecycleAction

    @property
    def name(self) -> str:
        return f"{self.phase}-{self.cause}-{self.action}".lower()

    @property
    def spec(self) -> JobSpec:
        policies = {"policies": [{**CAUSES[self.cause], "action": str(self.action)}]}
        owner = {"PodPending": "stuck", "Unknown": ""}.get(self.cause, "work")
        tasks = [task | (policies if task["name"] == owner else {}) for task in self.tasks()]
        of_job = self.more() | ({} if owner else policies)
        return JobSpec.parse({"name": self.name, "tasks": tasks, "max_retry": 1, **of_job})

    @abstractmethod
    def tasks(self) -> list[dict[str, Any]]:
        """The tasks, `work` among them: nearly all events are about it."""

    def more(self) -> dict[str, Any]:
        """More fields of the job."""
        return {}


AnyCell = TypeVar("AnyCell", bound=Cell)


class Jobs(Generic[AnyCell]):
    """The jobs of all cells, and the events that can occur in each."""

    def __init__(self, world: World, cells: Sequence[AnyCell]) -> None:
        self.world, self.backend = world, backend_of(world.cluster)
        self.jobs = {cell: self._submit(cell) for cell in cells}
        self.pods: dict[AnyCell, dict[str, Pod]] = {}

    def _submit(self, cell: AnyCell) -> Job:
        return services.submit(spec=cell.spec, tenant=self.world.tenant, user=self.world.alice, now=clock.now())

    def states(self) -> dict[AnyCell, State]:
        """The state of each job."""
        cells = {job.pk: cell for cell, job in self.jobs.items()}
        self.jobs = {cells[job.pk]: job for job in Job.objects.filter(pk__in=cells)}
        self.pods = {cell: {} for cell in self.jobs}
        for pod in Pod.objects.select_related("job").order_by("task", "index", "attempt"):
            self.pods[cells[pod.job_id]][str(pod)] = pod
        return {
            cell: (
                job.phase,
                job.version,
                job.retry_count,
                {name: _state(pod) for name, pod in self.pods[cell].items()},
            )
            for cell, job in self.jobs.items()
        }

    def reconcile_until(
        self, expected: dict[AnyCell, State], before_each: Callable[[dict[AnyCell, State]], None] | None = None
    ) -> dict[AnyCell, State]:
        """Reconciles until every job has its expected state, or time is up; returns the states a little later."""
        deadline = clock.now().timestamp() + SECONDS
        while (states := self.states()) != expected and clock.now().timestamp() < deadline:
            if before_each:
                before_each(states)
            controllers.reconcile(self.world.cluster)
        for _ in range(3):
            controllers.reconcile(self.world.cluster)
        return self.states()

    def evict(self, cell: AnyCell, name: str) -> None:
        """The scheduler evicts this pod to make room."""
        self.decide(JobDecision(self.jobs[cell].pk, 1, evictions={self.pods[cell][name].pk: EvictionReason("preempt")}))

    def decide(self, decision: JobDecision) -> None:
        """Records a decision of the scheduler."""
        services.commit(self.world.cluster.pk, self._epoch(), [decision], now=clock.now())

    def observe(self, cell: AnyCell, phase: PodPhase, *names: str) -> None:
        """The backend reports this phase for the last attempts of these replicas."""
        now, pods = clock.now(), [self.pods[cell][name] for name in names]
        sightings = [Sighting(pod.task, pod.index, pod.attempt, phase, now) for pod in pods]
        job, address_of = self.jobs[cell].uid, self.backend.runner.address
        services.observe(self.world.cluster.pk, self._epoch(), job, sightings, address_of=address_of, now=now)

    def grow(self, cell: AnyCell) -> None:
        """Alice adds one replica to `work`, and makes it part of the minimum."""
        size = JobScale.parse({"tasks": {"work": {"replicas": 3, "min_available": 3}}})
        services.scale(self.jobs[cell], size, user=self.world.alice, now=clock.now())

    def _epoch(self) -> int:
        epoch = leases.take(self.world.cluster, identity(), now=clock.now())
        assert epoch is not None
        return epoch


def _state(pod: Pod) -> str:
    return f"{pod.attempt} {pod.phase}{' stopping' if pod.stopping else ''}"


def named(states: dict[AnyCell, State]) -> dict[str, State]:
    """The states by the names of their cells, for a readable failure."""
    return {cell.name: state for cell, state in states.items()}
