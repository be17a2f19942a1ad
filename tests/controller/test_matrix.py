"""Events and actions of policies: a job of its own for each pair, all at once on a simulated cluster.

The events and expected results are in tables, from which the jobs are made. Here jobs are pending or running. Later
events are in `test_matrix_late.py`; commands in every phase are below. The pure lifecycle has the same cells
(`tests/domain/lifecycle/test_matrix.py`).
"""

from dataclasses import dataclass
from datetime import timedelta
from itertools import product
from typing import Any

from tests.controller.conftest import World
from tests.controller.matrix import (
    CAUSES,
    ENDED_BY,
    ENDS,
    PARTIAL,
    WAIT_SECONDS,
    Cell,
    Jobs,
    State,
    named,
    stuck,
    task,
)
from tests.support import auditor
from tests.support.examples import EVERY
from tests.support.pods import stop_pod

from hekla.apps.event_log.models import LoggedEvent
from hekla.apps.jobs import services
from hekla.apps.jobs.models import Job, Pod
from hekla.controller.controllers import controllers
from hekla.controller.observations import key_of
from hekla.domain.jobspec import JobSpec
from hekla.domain.lifecycle import ImpossibleTransition
from hekla.domain.phases import JobPhase, PodPhase
from hekla.domain.policies import POLICY_ACTIONS, LifecycleAction
from hekla.lib import clock

LAST = ("PodPending", "Unknown")
"""Events that recur after every restart. The second one exceeds the retries."""


@dataclass(frozen=True)
class EarlyCell(Cell):
    """One pod has succeeded, three run. One that fits no node keeps the job Pending, or is not part of the minimum."""

    @property
    def has_stuck(self) -> bool:
        return self.phase == "pending" or self.cause == "PodPending"

    def tasks(self) -> list[dict[str, Any]]:
        tasks = [task("done", 0), task("work", replicas=2, partition_size=1, max_retry=1), task("rest")]
        if self.phase == "pending":
            return [*tasks, stuck(depends_on={"tasks": ["done", "work", "rest"]})]
        return [*tasks, stuck(min_available=0)] if self.has_stuck else tasks

    def before(self) -> dict[str, str]:
        """The pods before the event."""
        stuck = {"stuck-0": "1 pending"} if self.has_stuck else {}
        return {"done-0": "1 succeeded", "rest-0": "1 running", "work-0": "1 running", "work-1": "1 running"} | stuck

    def happened(self) -> dict[str, str]:
        """The pods after the event, without a policy."""
        changed = {
            "PodEvicted": {"work-1": f"2 {self._new_state}"},
            "TaskFailed": {"work-1": "2 lost"},
            "TaskCompleted": {"work-0": "1 succeeded", "work-1": "1 succeeded"},
            "JobUpdated": {"work-2": f"1 {self._new_state}"},
        }
        otherwise = {} if self.cause in LAST else {"work-1": "1 failed"}
        return self.before() | changed.get(self.cause, otherwise)

    @property
    def _new_state(self) -> str:
        """The state of a replaced or added pod: it runs, except that a Pending gang does not fit as a whole."""
        return "pending" if self.phase == "pending" else "running"

    def expected(self) -> State:
        """The result of the policy."""
        if self.action is LifecycleAction.RESUME_JOB or (self.cause == "Unknown" and self.action in PARTIAL):
            return self.phase, 1, 0, self.happened()
        if self.action in ENDS:
            return ENDS[self.action][1], 1, 0, _stopped(self._without_new_pods())
        version, pods = 1 + (self.action is LifecycleAction.RESTART_JOB), self._restarted()
        if self.cause in LAST:
            return "failed", version, 1, _stopped(pods)
        return self.phase, version, int(self.cause != "JobUpdated"), pods

    def _without_new_pods(self) -> dict[str, str]:
        """The pods without those that the end of the job prevents."""
        if self.cause == "JobUpdated":
            return self.before()
        return self.happened() | ({"work-1": "1 failed stopping"} if self.cause == "PodEvicted" else {})

    def _restarted(self) -> dict[str, str]:
        pods = self._without_new_pods()
        if self.action is LifecycleAction.RESTART_JOB:
            new = {"work-2": "1 running"} if self.cause == "JobUpdated" else {}
            return {name: _next(pods[name], state.split()[1]) for name, state in self.before().items()} | new
        if self.cause == "PodPending":
            return pods | {"stuck-0": "2 pending"}
        return self.happened() | {name: _next(pods[name], self._new_state) for name in self._restarted_names()}

    def _restarted_names(self) -> list[str]:
        """The part of the job that restarts. A change of the task's size restarts all of it."""
        if self.action is LifecycleAction.RESTART_TASK or self.cause == "JobUpdated":
            return ["work-0", "work-1"]
        return ["work-0" if self.cause == "TaskCompleted" else "work-1"]


def _next(attempt: str, state: str) -> str:
    return f"{int(attempt.split(maxsplit=1)[0]) + 1} {state}"


def _stopped(pods: dict[str, str]) -> dict[str, str]:
    """Live pods are stopped, the others unchanged."""
    over = "failed stopping"
    return {name: state.replace("running", over).replace("pending", over) for name, state in pods.items()}


CELLS = [  # by default every third of the pairs: other ones for pending jobs than for running ones
    EarlyCell(phase, cause, action)
    for phase, cause, action in product(("running", "pending"), CAUSES, POLICY_ACTIONS)
    if (phase, cause) != ("running", "Unknown")  # a gang is Unknown while a part of it fits no node
][::EVERY]


class EarlyJobs(Jobs[EarlyCell]):
    """The jobs, and the event of each, once its pods run."""

    def __init__(self, world: World) -> None:
        super().__init__(world, CELLS)
        self.done: dict[EarlyCell, int] = dict.fromkeys(CELLS, 0)

    def trigger_events(self, states: dict[EarlyCell, State]) -> None:
        """Triggers the event of each cell that is ready, and the second one where two are needed."""
        for cell, state in states.items():
            if self._is_ready(cell, state) and self.done[cell] < 2 and cell.cause != "Unknown":
                self.done[cell] += 1
                self._trigger(cell)

    def _is_ready(self, cell: EarlyCell, state: State) -> bool:
        if self.done[cell]:
            subject = {"TaskFailed": "work-1", "PodPending": "stuck-0"}.get(cell.cause)
            return subject is not None and state[3][subject] in ("2 pending", "2 running")
        return state == (cell.phase, 1, 0, cell.before())

    def _trigger(self, cell: EarlyCell) -> None:
        pods = self.pods[cell]
        if cell.cause == "PodEvicted":
            self.evict(cell, "work-1")
        elif cell.cause == "TaskFailed":
            self.observe(cell, PodPhase.LOST, "work-1")
        elif cell.cause == "TaskCompleted":
            self.observe(cell, PodPhase.SUCCEEDED, "work-0", "work-1")
        elif cell.cause == "PodPending":
            long_ago = clock.now() - timedelta(seconds=WAIT_SECONDS)
            Pod.objects.filter(pk=pods["stuck-0"].pk).update(created_at=long_ago)
            controllers.close(self.world.cluster.pk)  # the next one reads the row, which changed without an event
        elif cell.cause == "JobUpdated":
            self.grow(cell)
        else:
            stop_pod(self.backend, key_of(pods["work-1"]), reason="Somebody ended it.")


def test_each_event_has_the_effect_of_its_policy(simulated: World) -> None:
    early, expected = EarlyJobs(simulated), {cell: cell.expected() for cell in CELLS}
    assert named(early.reconcile_until(expected, early.trigger_events)) == named(expected)
    auditor.audit()


P = JobPhase
ACTIVE = (P.PENDING, P.RUNNING, P.RESTARTING)
COMMANDS: dict[LifecycleAction, dict[JobPhase, JobPhase | None]] = {
    LifecycleAction.ABORT_JOB: {**dict.fromkeys(ACTIVE, P.ABORTING), P.ABORTING: None, P.ABORTED: None},
    LifecycleAction.COMPLETE_JOB: {**dict.fromkeys(ACTIVE, P.COMPLETING), P.COMPLETING: None, P.COMPLETED: None},
    LifecycleAction.TERMINATE_JOB: {**dict.fromkeys(ACTIVE, P.TERMINATING), P.TERMINATING: None, P.TERMINATED: None},
    LifecycleAction.RESTART_JOB: {P.PENDING: P.RESTARTING, P.RUNNING: P.RESTARTING, P.RESTARTING: None},
    LifecycleAction.RESUME_JOB: {P.ABORTING: P.RESTARTING, P.ABORTED: P.RESTARTING, P.RESTARTING: None},
}
"""The first phase after a command; None: no change. Phases that are not listed refuse it."""
LED_BY = {P.RESTARTING: LifecycleAction.RESTART_JOB, **ENDED_BY}
SETTLED = (P.PENDING, P.RUNNING, P.ABORTED, P.COMPLETED, P.TERMINATED, P.FAILED)


def _job_in(world: World, phase: JobPhase, action: LifecycleAction) -> Job:
    """A job that will reach this phase, or Running so that a command leads there."""
    ends = {"env": {"HEKLA_SIM_SECONDS": "0", "HEKLA_SIM_EXIT": "3"}} if phase is P.FAILED else {}
    where = {"node_selector": {"no": "where"}} if phase is P.PENDING else {}
    name = f"{phase}-{action}".lower()
    spec = JobSpec.parse({"name": name, "tasks": [task("work", replicas=2, **ends, **where)]})
    return services.submit(spec=spec, tenant=world.tenant, user=world.alice, now=clock.now())


Key = tuple[JobPhase, LifecycleAction]


def _phases(jobs: dict[Key, Job]) -> dict[Key, JobPhase]:
    phases = dict(Job.objects.values_list("pk", "phase"))
    return {key: JobPhase(phases[job.pk]) for key, job in jobs.items()}


def _reach_phases(world: World, jobs: dict[Key, Job]) -> None:
    """Leads every job to its phase; passing phases come last, because jobs do not stay in them."""
    world.reconcile_until(
        lambda: all(phase in SETTLED[1:] for (at, _), phase in _phases(jobs).items() if at is not P.PENDING)
    )
    for ends in (True, False):
        for (at, _), job in jobs.items():
            if at in LED_BY and at.is_final is ends:
                services.command(job, LED_BY[at], user=world.alice, now=clock.now())
        if ends:
            world.reconcile_until(lambda: all(phase is at for (at, _), phase in _phases(jobs).items() if at.is_final))
    assert _phases(jobs) == {key: key[0] for key in jobs}


def _entered(jobs: dict[Key, Job], since: int) -> dict[Key, JobPhase | None]:
    """The first phase that each job entered after this event."""
    first: dict[str, JobPhase] = {}
    for event in LoggedEvent.objects.filter(kind="JobPhaseChanged", pk__gt=since).order_by("pk"):
        first.setdefault(event.subject, JobPhase(event.payload["new"]))
    return {key: first.get(f"job:{job.uid}") for key, job in jobs.items()}


def test_each_command_leads_from_each_phase_to_the_right_one(simulated: World) -> None:
    jobs = {(at, action): _job_in(simulated, at, action) for at, action in product(JobPhase, COMMANDS)}
    _reach_phases(simulated, jobs)
    refused, now = {}, clock.now()
    before = LoggedEvent.objects.latest("pk").pk
    for key, job in jobs.items():
        try:
            services.command(job, key[1], user=simulated.alice, now=now)
        except ImpossibleTransition as impossible:
            refused[key] = impossible.message
    entered = _entered({key: job for key, job in jobs.items() if key not in refused}, before)
    assert set(refused) == {(at, action) for at, action in jobs if at not in COMMANDS[action]}
    assert all(message.startswith(f"The job is {at}. {action} ") for (at, action), message in refused.items())
    assert entered == {(at, action): COMMANDS[action][at] for at, action in entered}
    simulated.reconcile_until(lambda: all(phase in SETTLED for phase in _phases(jobs).values()))
    assert not Job.objects.exclude(retry_count=0).exists()
    auditor.audit()
