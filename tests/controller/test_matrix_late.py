"""Events that find jobs restarting, ending or over, with every action: each by a job of its own on a simulated cluster.

What is wanted of the jobs stands in tables (`late_cells.py`). Pods take hours to end, and the test goes through them at
leaps.
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
from tests.support.pods import stop_pod

from hekla.apps.jobs import services
from hekla.apps.jobs.services.decisions import JobDecision, Waiting
from hekla.controller.controllers import controllers
from hekla.controller.observations import key_of
from hekla.domain.errors import Refused
from hekla.domain.phases import GangPhase, JobPhase, PodPhase
from hekla.lib import clock

NO_PLACE = Waiting(({"cause": "node", "plugin": "predicates", "code": "taint"},), "A part of the gang finds no place.")


class Leaps:
    """The real time and what was leapt over."""

    def __init__(self) -> None:
        self._real, self._ahead = clock.now, timedelta()

    def now(self) -> datetime:
        return self._real() + self._ahead

    def over(self, seconds: int) -> None:
        self._ahead += timedelta(seconds=seconds)


@pytest.fixture
def leap(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """So many seconds later."""
    leaps = Leaps()
    monkeypatch.setattr(clock, "now", leaps.now)
    return leaps.over


class Late(Jobs[LateCell]):
    """Jobs that are led to their phases, and find there what they find."""

    def expect(self, wanted: Callable[[LateCell], State]) -> None:
        states = {cell: cell.counted(wanted(cell)) for cell in self.jobs}
        assert named(self.turn_until(states, self._lose_first)) == named(states)

    def _lose_first(self, states: dict[LateCell, State]) -> None:
        """A task fails when one of its pods is lost for the second time."""
        fails = [cell for cell in states if cell.cause == "TaskFailed"]
        self._lose([cell for cell in fails if states[cell][3].get("work-1") == "1 running"])

    def _lose(self, cells: Sequence[LateCell]) -> None:
        """The backend does not know a pod any more, as the next one that asks about all of them is told."""
        for cell in cells:
            key = key_of(self.pods[cell]["work-1"])
            stop_pod(self.backend, key, reason="Its machine is gone.")
            self.backend.forget([key])
        if cells:
            controllers.reset()

    def set_off(self) -> None:
        """What takes its time begins while they are at work: a pod that is evicted, or that somebody ends."""
        for cell in (cell for cell in self.jobs if cell.phase not in ENDED):
            if cell.cause == "PodEvicted":
                self.evict(cell, "work-1")
            elif cell.cause in ("PodFailed", "any", "exit"):
                stop_pod(self.backend, key_of(self.pods[cell]["work-1"]), reason="Somebody ended it.")

    def lead(self) -> None:
        """Alice does, where jobs do not go by themselves."""
        for cell, job in self.jobs.items():
            if cell.phase not in BY_ITSELF:
                part = "rest" if cell.phase is JobPhase.RESTARTING else ""
                services.command(job, LED_BY[cell.phase], task=part, user=self.world.alice, now=clock.now())

    def happen(self) -> None:
        """What happens at one instant."""
        self._lose([cell for cell in self.jobs if cell.cause == "TaskFailed"])
        for cell, job in self.jobs.items():
            if cell.cause == "Unknown":
                self.decide(JobDecision(job.pk, job.version, job.revision, GangPhase.UNKNOWN, waiting=NO_PLACE))
            elif cell.phase in ENDED:
                self._tell_again(cell)

    def _tell_again(self, cell: LateCell) -> None:
        """Where no pod lives there is only news that is old."""
        if cell.cause == "PodEvicted":
            self.evict(cell, "work-1")
        told = {"TaskFailed": PodPhase.LOST, "TaskCompleted": PodPhase.SUCCEEDED}
        self.see(cell, told.get(cell.cause, PodPhase.FAILED), "work-0", "work-1")

    def grow_all(self) -> set[LateCell]:
        """Alice gives jobs another size. Returns those that refuse."""
        refused = set()
        for cell in self.jobs:
            if cell.cause == "JobUpdated":
                try:
                    self.grow(cell)
                except Refused:
                    refused.add(cell)
        return refused


@pytest.mark.parametrize("phase", LATE)
def test_every_event_that_comes_late_leads_where_its_policy_says(
    phase: JobPhase, leap: Callable[[int], None], simulated: World
) -> None:
    late = Late(simulated, [cell for cell in CELLS if cell.phase is phase])
    late.expect(LateCell.at_work)
    late.set_off()
    late.lead()
    leap(LEAD)
    late.expect(LateCell.led)
    leap(EVENT)
    late.happen()
    refused = late.grow_all()
    assert refused == {cell for cell in late.jobs if cell.cause == "JobUpdated" and phase in SIZE_IS_FIXED}
    late.expect(LateCell.happened)
    leap(SETTLE)
    late.expect(LateCell.settled)
    grown = {cell for cell, job in late.jobs.items() if job.replicas > cell.spec.replicas}
    assert grown == {cell for cell in late.jobs if cell.cause == "JobUpdated"} - refused
    auditor.audit_everything()
