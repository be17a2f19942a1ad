"""Events in jobs that are restarting, ending or over, with every action: one simulated job for each pair.

The expected results are in tables (`late_cells.py`). By default each phase tries a ninth of its pairs, other ones than
the phase before, and all phases share a cluster; `HEKLA_EXAMPLES=1` tries all, one phase after the other. Pods take
hours to end, so the test moves the clock forward.
"""

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

import pytest
from tests.controller.conftest import World
from tests.controller.late_cells import (
    BY_ITSELF,
    CELLS,
    ENDED,
    EVENT,
    LATE,
    LEAD,
    LED_BY,
    SETTLE,
    SIZE_IS_FIXED,
    LateCell,
)
from tests.controller.matrix import Jobs, State, named
from tests.support import auditor
from tests.support.examples import EVERY
from tests.support.pods import stop_pod

from hekla.apps.jobs import services
from hekla.apps.jobs.services.decisions import JobDecision, Waiting
from hekla.controller.controllers import controllers
from hekla.controller.observations import key_of
from hekla.domain.errors import Refused
from hekla.domain.phases import GangPhase, JobPhase, PodPhase
from hekla.lib import clock

UNSCHEDULABLE = Waiting(
    ({"cause": "node", "plugin": "predicates", "code": "taint"},), "A part of the gang finds no place."
)


class MovableClock:
    """The real time plus an offset."""

    def __init__(self) -> None:
        self._real, self._ahead = clock.now, timedelta()

    def now(self) -> datetime:
        return self._real() + self._ahead

    def advance(self, seconds: int) -> None:
        self._ahead += timedelta(seconds=seconds)


@pytest.fixture
def advance(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Moves the clock forward by seconds."""
    movable_clock = MovableClock()
    monkeypatch.setattr(clock, "now", movable_clock.now)
    return movable_clock.advance


class LateJobs(Jobs[LateCell]):
    """Jobs in their late phases, and the events that occur there."""

    def expect(self, expected: Callable[[LateCell], State]) -> None:
        states = {cell: cell.counted(expected(cell)) for cell in self.jobs}
        assert named(self.reconcile_until(states, self._lose_first)) == named(states)

    def _lose_first(self, states: dict[LateCell, State]) -> None:
        """A task fails when one of its pods is lost for the second time."""
        fails = [cell for cell in states if cell.cause == "TaskFailed"]
        self._lose([cell for cell in fails if states[cell][3].get("work-1") == "1 running"])

    def _lose(self, cells: Sequence[LateCell]) -> None:
        """The backend loses these pods; the next full observation reports them as lost."""
        for cell in cells:
            key = key_of(self.pods[cell]["work-1"])
            stop_pod(self.backend, key, reason="Its machine is gone.")
            self.backend.forget([key])
        if cells:
            controllers.reset()

    def start_slow_events(self) -> None:
        """Starts the events that take time while the jobs still run: evictions and ending pods."""
        for cell in (cell for cell in self.jobs if cell.phase not in ENDED):
            if cell.cause == "PodEvicted":
                self.evict(cell, "work-1")
            elif cell.cause in ("PodFailed", "any", "exit"):
                stop_pod(self.backend, key_of(self.pods[cell]["work-1"]), reason="Somebody ended it.")

    def enter_phases(self) -> None:
        """Alice gives the commands that lead to each phase; some phases are reached without one."""
        for cell, job in self.jobs.items():
            if cell.phase not in BY_ITSELF:
                part = "rest" if cell.phase is JobPhase.RESTARTING else ""
                services.command(job, LED_BY[cell.phase], task=part, user=self.world.alice, now=clock.now())

    def trigger_events(self) -> None:
        """Triggers the events that take no time."""
        self._lose([cell for cell in self.jobs if cell.cause == "TaskFailed"])
        for cell, job in self.jobs.items():
            if cell.cause == "Unknown":
                self.decide(JobDecision(job.pk, job.version, job.revision, GangPhase.UNKNOWN, waiting=UNSCHEDULABLE))
            elif cell.phase in ENDED:
                self._repeat_observations(cell)

    def _repeat_observations(self, cell: LateCell) -> None:
        """In a job without live pods, the backend can only report old results again."""
        if cell.cause == "PodEvicted":
            self.evict(cell, "work-1")
        phases = {"TaskFailed": PodPhase.LOST, "TaskCompleted": PodPhase.SUCCEEDED}
        self.observe(cell, phases.get(cell.cause, PodPhase.FAILED), "work-0", "work-1")

    def grow_all(self) -> set[LateCell]:
        """Alice scales the jobs of JobUpdated. Returns those that refuse."""
        refused = set()
        for cell in self.jobs:
            if cell.cause == "JobUpdated":
                try:
                    self.grow(cell)
                except Refused:
                    refused.add(cell)
        return refused


def _tried(phase: JobPhase) -> list[LateCell]:
    cells = [cell for cell in CELLS if cell.phase is phase]
    return cells[LATE.index(phase) % EVERY**2 :: EVERY**2]


@pytest.mark.parametrize("phases", [LATE] if EVERY > 1 else [(phase,) for phase in LATE], ids="-".join)
def test_each_late_event_has_the_effect_of_its_policy(
    phases: Sequence[JobPhase], advance: Callable[[int], None], simulated: World
) -> None:
    late = LateJobs(simulated, [cell for phase in phases for cell in _tried(phase)])
    late.expect(LateCell.at_work)
    late.start_slow_events()
    late.enter_phases()
    advance(LEAD)
    late.expect(LateCell.entered)
    advance(EVENT)
    late.trigger_events()
    refused = late.grow_all()
    assert refused == {cell for cell in late.jobs if cell.cause == "JobUpdated" and cell.phase in SIZE_IS_FIXED}
    late.expect(LateCell.happened)
    advance(SETTLE)
    late.expect(LateCell.settled)
    grown = {cell for cell, job in late.jobs.items() if job.replicas > cell.spec.replicas}
    assert grown == {cell for cell in late.jobs if cell.cause == "JobUpdated"} - refused
    auditor.audit_everything()
