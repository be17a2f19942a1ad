"""Runs the engine again on a recorded cycle, and compares its decisions with the recorded ones.

Extenders are not called: they get their recorded answers, in order. Needs no database, so the command line replays a
file without the console.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from hekla.engine.cycle_trace import CycleTrace, traced_cycle
from hekla.engine.decisions import Decisions
from hekla.engine.policy import SchedulerPolicy, parse
from hekla.scheduling.cycle_document import CycleOutcome, ExtenderReply, RecordedCycle, outcome_of

MAX_DIFFERENCES = 200


class _NoRecordedAnswer(Exception):
    """The extender did not answer in the recorded cycle, or was not called so often."""


@dataclass(frozen=True, slots=True)
class OutcomeDifference:
    """A decision that was recorded and not made again, or the reverse. `part`: the field of `CycleOutcome`."""

    part: str
    decision: str
    is_recorded: bool


@dataclass(frozen=True, slots=True)
class CycleReplay:
    """The replayed decisions and trace. `differences`: at most `MAX_DIFFERENCES`; none if all are equal."""

    cycle: RecordedCycle
    policy: SchedulerPolicy
    decisions: Decisions
    trace: CycleTrace
    outcome: CycleOutcome
    differences: tuple[OutcomeDifference, ...]

    @property
    def is_equal(self) -> bool:
        """Whether the engine decided what was recorded."""
        return self.outcome == self.cycle.outcome


def replay(cycle: RecordedCycle, *, traced: Sequence[str] = ()) -> CycleReplay:
    """Run the engine on this cycle. `traced`: uids of the jobs to explain. Raises Invalid for its policy."""
    call, policy = RecordedAnswers(cycle.answers), parse(cycle.policy)
    decided, trace = traced_cycle(cycle.state, policy, cycle.now, call, traced=traced)
    outcome = outcome_of(cycle.state, decided, tuple(cycle.outcome.refusals))
    found = tuple(one for one, _at in zip(_differences(cycle.outcome, outcome), range(MAX_DIFFERENCES), strict=False))
    return CycleReplay(cycle, policy, decided, trace, outcome, found)


class RecordedAnswers:
    """Stands for the extenders: returns the recorded answers in order."""

    def __init__(self, answers: Iterable[ExtenderReply]) -> None:
        self._answers = iter(answers)

    def __call__(self, _address: str, _document: Mapping[str, Any], _timeout: float) -> Any:  # noqa: ANN401
        is_answer, answer = next(self._answers, (False, "no more answers were recorded"))
        if not is_answer:
            raise _NoRecordedAnswer(str(answer))
        return answer


def _differences(recorded: CycleOutcome, replayed: CycleOutcome) -> Iterator[OutcomeDifference]:
    """First those of single decisions; an equal set in another order is one difference."""
    for part in (one.name for one in fields(CycleOutcome)):
        before, after = getattr(recorded, part), getattr(replayed, part)
        if before == after:
            continue
        old, new = ([*one.items()] if isinstance(one, Mapping) else [*one] for one in (before, after))
        only_old, only_new = set(old) - set(new), set(new) - set(old)
        yield from (OutcomeDifference(part, _text(one), True) for one in old if one in only_old)
        yield from (OutcomeDifference(part, _text(one), False) for one in new if one in only_new)
        if not only_old and not only_new:
            yield OutcomeDifference(part, "the order", True)


def _text(decision: Any) -> str:  # noqa: ANN401
    return decision if isinstance(decision, str) else " ".join(str(one) for one in decision if one)
