"""Events and actions of policies, each pair run by a job of its own, all at once, on a simulated cluster.

What happens to the job and what is wanted of it stand in tables; the jobs are made from them. The pure lifecycle has
the same cells for every phase (`tests/domain/lifecycle/test_matrix.py`).
"""

from dataclasses import dataclass
from datetime import timedelta
from itertools import product
from typing import Any

import pytest
from tests.controller.conftest import World
from tests.support import auditor

from hekla.apps.clusters import leases
from hekla.apps.jobs import services
from hekla.apps.jobs.models import Job, Pod
from hekla.apps.jobs.services.decisions import JobDecision, Yield
from hekla.apps.jobs.services.observations import Sighting
from hekla.apps.outbox.models import Event
from hekla.controller import turns
from hekla.controller.backends import backend_of
from hekla.controller.observations import key_of
from hekla.controller.watch import holder
from hekla.domain.jobspec import JobSpec
from hekla.domain.lifecycle import ImpossibleTransition
from hekla.domain.phases import JobPhase, PodPhase
from hekla.domain.policies import POLICY_ACTIONS, Action
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
}
LAST = ("PodPending", "Unknown")
"""What is so from the beginning, and again after every restart: the second one is one too many."""
PARTIAL = (Action.RESTART_TASK, Action.RESTART_POD)
ENDS = {Action.ABORT_JOB: "aborted", Action.COMPLETE_JOB: "completed", Action.TERMINATE_JOB: "terminated"}
SECONDS = 90.0
State = tuple[str, int, int, dict[str, str]]
"""Phase, version, retries, and for each replica the number and the state of its last attempt."""


@dataclass(frozen=True)
class Cell:
    """A job in a phase, with a policy of this cause and action.

    One of its pods is done, three work; one that finds no place holds the job in Pending, or is over and above.
    """

    phase: str
    cause: str
    action: Action

    @property
    def name(self) -> str:
        return f"{self.phase}-{self.cause}-{self.action}".lower()

    @property
    def has_stuck(self) -> bool:
        return self.phase == "pending" or self.cause == "PodPending"

    @property
    def spec(self) -> JobSpec:
        policies = {"policies": [{**CAUSES[self.cause], "action": str(self.action)}]}
        owner = {"PodPending": "stuck", "Unknown": ""}.get(self.cause, "work")
        tasks = [task | (policies if task["name"] == owner else {}) for task in self._tasks()]
        return JobSpec.parse({"name": self.name, "tasks": tasks, "max_retry": 1, **({} if owner else policies)})

    def _tasks(self) -> list[dict[str, Any]]:
        every = {"command": ["x"], "resources": {"cpu": "1"}}
        busy = {**every, "env": {"HEKLA_SIM_SECONDS": "1e9"}}
        tasks = [
            {**every, "name": "done", "env": {"HEKLA_SIM_SECONDS": "0"}},
            {**busy, "name": "work", "replicas": 2, "max_retry": 1},
            {**busy, "name": "rest"},
        ]
        stuck = {**busy, "name": "stuck", "node_selector": {"no": "where"}}
        if self.phase == "pending":
            return [*tasks, {**stuck, "depends_on": {"tasks": ["done", "work", "rest"]}}]
        return [*tasks, {**stuck, "min_available": 0}] if self.has_stuck else tasks

    def before(self) -> dict[str, str]:
        """The pods when all is as it should be before it happens."""
        stuck = {"stuck-0": "1 pending"} if self.has_stuck else {}
        return {"done-0": "1 succeeded", "rest-0": "1 running", "work-0": "1 running", "work-1": "1 running"} | stuck

    def happened(self) -> dict[str, str]:
        """The pods when it has happened, and no policy says anything."""
        changed = {
            "PodEvicted": {"work-1": f"2 {self._again}"},
            "TaskFailed": {"work-1": "2 lost"},
            "TaskCompleted": {"work-0": "1 succeeded", "work-1": "1 succeeded"},
        }
        otherwise = {} if self.cause in LAST else {"work-1": "1 failed"}
        return self.before() | changed.get(self.cause, otherwise)

    @property
    def _again(self) -> str:
        """Where a pod comes that is replaced: the gang must find room as a whole, and in Pending it does not."""
        return "pending" if self.phase == "pending" else "running"

    def wanted(self) -> State:
        """What the policy makes of it."""
        if self.action is Action.RESUME_JOB or (self.cause == "Unknown" and self.action in PARTIAL):
            return self.phase, 1, 0, self.happened()
        if self.action in ENDS:
            evicted = {"work-1": "1 stopped"} if self.cause == "PodEvicted" else {}
            return ENDS[self.action], 1, 0, _stopped(self.happened() | evicted)
        version, pods = 1 + (self.action is Action.RESTART_JOB), self._restarted()
        return ("failed", version, 1, _stopped(pods)) if self.cause in LAST else (self.phase, version, 1, pods)

    def _restarted(self) -> dict[str, str]:
        there = self.happened()
        if self.cause == "PodEvicted":
            there["work-1"] = "1 stopped"
        if self.action is Action.RESTART_JOB:
            return {name: _next(there[name], state.split()[1]) for name, state in self.before().items()}
        if self.cause == "PodPending":
            return there | {"stuck-0": "2 pending"}
        one = "work-0" if self.cause == "TaskCompleted" else "work-1"
        chosen = ["work-0", "work-1"] if self.action is Action.RESTART_TASK else [one]
        return there | {name: _next(there[name], self._again) for name in chosen}


def _next(attempt: str, state: str) -> str:
    return f"{int(attempt.split(maxsplit=1)[0]) + 1} {state}"


def _stopped(pods: dict[str, str]) -> dict[str, str]:
    """What lived was stopped; what has ended is kept."""
    return {name: state.replace("running", "stopped").replace("pending", "stopped") for name, state in pods.items()}


CELLS = [
    Cell(phase, cause, action)
    for phase, cause, action in product(("running", "pending"), CAUSES, POLICY_ACTIONS)
    if (phase, cause) != ("running", "Unknown")  # a gang is Unknown while a part of it finds no place
]


@pytest.fixture
def simulated(transactional_db: None, settings, tmp_path) -> World:
    """Room for everybody, and pods that start and stop at once."""
    settings.HEKLA_HOME, settings.CHECK_ENGINE = tmp_path, False
    turns.forget_all()
    size = {"cpu": "2000", "memory": "8Gi", "pods": "2000"}
    config = {"nodes": [{"name": "n", "allocatable": size}], "speed": 1e6, "prepare_seconds": {"min": 0, "max": 0}}
    return World.found("simulated", config)


class Matrix:
    """The jobs of all cells, and what is done to each when it is ready."""

    def __init__(self, world: World) -> None:
        self.world, self.backend = world, backend_of(world.cluster)
        self.jobs = {cell: self._submit(cell) for cell in CELLS}
        self.done: dict[Cell, int] = dict.fromkeys(CELLS, 0)

    def _submit(self, cell: Cell) -> Job:
        return services.submit(spec=cell.spec, tenant=self.world.tenant, user=self.world.alice, now=clock.now())

    def states(self) -> dict[Cell, State]:
        """Where each job stands."""
        cells = {job.pk: cell for cell, job in self.jobs.items()}
        self.jobs = {cells[job.pk]: job for job in Job.objects.filter(pk__in=cells)}
        self.pods: dict[Cell, dict[str, Pod]] = {cell: {} for cell in CELLS}
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

    def run(self) -> dict[Cell, State]:
        """Turn until every job is where it should be, or time is up; answers where they are a little later."""
        wanted, deadline = {cell: cell.wanted() for cell in CELLS}, clock.now().timestamp() + SECONDS
        while (states := self.states()) != wanted and clock.now().timestamp() < deadline:
            for cell, state in states.items():
                self._let_happen(cell, state)
            turns.run(self.world.cluster)
        for _ in range(3):
            turns.run(self.world.cluster)
        return self.states()

    def _let_happen(self, cell: Cell, state: State) -> None:
        """What the cell is about, once it is ready for it; and where it takes two of them, once more."""
        is_ready = state == (cell.phase, 1, 0, cell.before())
        if self.done[cell]:
            subject = {"TaskFailed": "work-1", "PodPending": "stuck-0"}.get(cell.cause)
            is_ready = subject is not None and state[3][subject] in ("2 pending", "2 running")
        if is_ready and self.done[cell] < 2 and cell.cause != "Unknown":
            self.done[cell] += 1
            self._happen(cell, self.pods[cell])

    def _happen(self, cell: Cell, pods: dict[str, Pod]) -> None:
        if cell.cause == "PodEvicted":
            decision = JobDecision(self.jobs[cell].pk, 1, evictions={pods["work-1"].pk: Yield("preempt")})
            services.commit(self.world.cluster.pk, self._epoch(), [decision], now=clock.now())
        elif cell.cause == "TaskFailed":
            self._see(cell, PodPhase.LOST, pods["work-1"])
        elif cell.cause == "TaskCompleted":
            self._see(cell, PodPhase.SUCCEEDED, pods["work-0"], pods["work-1"])
        elif cell.cause == "PodPending":
            long_ago = clock.now() - timedelta(seconds=WAIT_SECONDS)
            Pod.objects.filter(pk=pods["stuck-0"].pk).update(created_at=long_ago)
        else:
            self.backend.stop(key_of(pods["work-1"]), reason="Somebody ended it.")

    def _see(self, cell: Cell, phase: PodPhase, *pods: Pod) -> None:
        now = clock.now()
        seen = [Sighting(pod.task, pod.index, pod.attempt, phase, now) for pod in pods]
        job = self.jobs[cell].uid
        address_of = self.backend.address
        services.observe(self.world.cluster.pk, self._epoch(), job, seen, address_of=address_of, now=now)

    def _epoch(self) -> int:
        epoch = leases.take(self.world.cluster, holder(), now=clock.now())
        assert epoch is not None
        return epoch


def _state(pod: Pod) -> str:
    return f"{pod.attempt} {'stopped' if pod.stopping and pod.is_final else pod.phase}"


def test_every_event_leads_where_its_policy_says(simulated: World) -> None:
    states = Matrix(simulated).run()
    assert {cell.name: state for cell, state in states.items()} == {cell.name: cell.wanted() for cell in CELLS}
    auditor.audit()


P = JobPhase
ACTIVE = (P.PENDING, P.RUNNING, P.RESTARTING)
COMMANDS: dict[Action, dict[JobPhase, JobPhase | None]] = {
    Action.ABORT_JOB: {**dict.fromkeys(ACTIVE, P.ABORTING), P.ABORTING: None, P.ABORTED: None},
    Action.COMPLETE_JOB: {**dict.fromkeys(ACTIVE, P.COMPLETING), P.COMPLETING: None, P.COMPLETED: None},
    Action.TERMINATE_JOB: {**dict.fromkeys(ACTIVE, P.TERMINATING), P.TERMINATING: None, P.TERMINATED: None},
    Action.RESTART_JOB: {P.PENDING: P.RESTARTING, P.RUNNING: P.RESTARTING, P.RESTARTING: None},
    Action.RESUME_JOB: {P.ABORTING: P.RESTARTING, P.ABORTED: P.RESTARTING, P.RESTARTING: None},
}
"""What a person's command leads to first; None: nothing new. Phases that are not named refuse it."""
LED_BY = {
    P.RESTARTING: Action.RESTART_JOB,
    P.ABORTING: Action.ABORT_JOB,
    P.ABORTED: Action.ABORT_JOB,
    P.COMPLETING: Action.COMPLETE_JOB,
    P.COMPLETED: Action.COMPLETE_JOB,
    P.TERMINATING: Action.TERMINATE_JOB,
    P.TERMINATED: Action.TERMINATE_JOB,
}
SETTLED = (P.PENDING, P.RUNNING, P.ABORTED, P.COMPLETED, P.TERMINATED, P.FAILED)


def _job_in(world: World, phase: JobPhase, action: Action) -> Job:
    """A job that will come into this phase, or into Running so that a command leads it there."""
    env = {"HEKLA_SIM_SECONDS": "1e9"} if phase is not P.FAILED else {"HEKLA_SIM_SECONDS": "0", "HEKLA_SIM_EXIT": "3"}
    where = {"node_selector": {"no": "where"}} if phase is P.PENDING else {}
    task = {"name": "work", "replicas": 2, "command": ["x"], "resources": {"cpu": "1"}, "env": env, **where}
    spec = JobSpec.parse({"name": f"{phase}-{action}".lower(), "tasks": [task]})
    return services.submit(spec=spec, tenant=world.tenant, user=world.alice, now=clock.now())


def _phase_of(job: Job) -> JobPhase:
    return JobPhase(Job.objects.get(pk=job.pk).phase)


def _lead(world: World, jobs: dict[tuple[JobPhase, Action], Job]) -> None:
    """Every job into its phase; those on their way somewhere last, since they do not stay."""
    world.turn_until(lambda: all(_phase_of(job) in SETTLED[1:] for (at, _), job in jobs.items() if at is not P.PENDING))
    for ends in (True, False):
        for (at, _), job in jobs.items():
            if at in LED_BY and at.is_final is ends:
                services.command(job, LED_BY[at], user=world.alice, now=clock.now())
        if ends:
            world.turn_until(lambda: all(_phase_of(job) is at for (at, _), job in jobs.items() if at.is_final))
    assert {key: _phase_of(job) for key, job in jobs.items()} == {key: key[0] for key in jobs}


def _entered(job: Job, since: int) -> JobPhase | None:
    """The first phase that the job entered after this event."""
    told = Event.objects.filter(subject=f"job:{job.uid}", kind="JobPhaseChanged", pk__gt=since).order_by("pk").first()
    return JobPhase(told.payload["new"]) if told else None


def test_every_command_leads_from_every_phase_where_it_should(simulated: World) -> None:
    jobs = {(at, action): _job_in(simulated, at, action) for at, action in product(JobPhase, COMMANDS)}
    _lead(simulated, jobs)
    refused, entered, now = {}, {}, clock.now()
    before = {key: Event.objects.latest("pk").pk for key in jobs}
    for key, job in jobs.items():
        try:
            services.command(job, key[1], user=simulated.alice, now=now)
        except ImpossibleTransition as impossible:
            refused[key] = impossible.message
        else:
            entered[key] = _entered(job, before[key])
    assert set(refused) == {(at, action) for at, action in jobs if at not in COMMANDS[action]}
    assert all(story.startswith(f"The job is {at}; {action} ") for (at, action), story in refused.items())
    assert entered == {(at, action): COMMANDS[action][at] for at, action in entered}
    simulated.turn_until(lambda: all(_phase_of(job) in SETTLED for job in jobs.values()))
    assert not Job.objects.exclude(retry_count=0).exists()
    auditor.audit()
