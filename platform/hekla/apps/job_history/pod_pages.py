"""Which replicas of a job a page shows: filtered by task, state and node, 25 at a time.

The table and the timeline of a job's pods show the same ones, so a page costs the same for three pods and a thousand.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hekla.apps.jobs.models import Pod
from hekla.domain.phases import PodPhase

ROWS = 25
FILTERS = ("task", "phase", "node")
_MOST_DIGITS = 5

PodState = tuple[str, int, str, str]
"""A replica with the state of its last attempt: task, index, phase, node."""


@dataclass(frozen=True, slots=True)
class TaskCount:
    """How many replicas of a task match the filters, by phase, in the order of phases."""

    name: str
    phases: Sequence[tuple[str, int]]


@dataclass(frozen=True, slots=True)
class PodPage:
    """A page of the replicas that match.

    `refs`: (task, index) of its replicas. `tasks`, `phases`, `nodes`: the values to filter by, phases with their count.
    `filters`: the active ones. `counts`: of all matches. `first`, `last`, `count`: which of the matches, from 1.
    """

    refs: Sequence[tuple[str, int]]
    tasks: Sequence[str]
    phases: Sequence[tuple[str, int]]
    nodes: Sequence[str]
    filters: Mapping[str, str]
    counts: Mapping[str, TaskCount]
    first: int
    last: int
    count: int
    page: int

    @property
    def previous(self) -> int:
        """The page before; 0 if there is none."""
        return self.page - 1

    @property
    def next(self) -> int:
        """The page after; 0 if there is none."""
        return self.page + 1 if self.last < self.count else 0

    @property
    def has_filters(self) -> bool:
        """Whether there is enough to filter."""
        return len(self.tasks) > 1 or len(self.phases) > 1 or len(self.nodes) > 1 or any(self.filters.values())


def states_of(pods: Iterable[Pod]) -> list[PodState]:
    """The replicas of these attempts, which are in order."""
    last = {(pod.task, pod.index): (pod.phase, pod.node) for pod in pods}
    return [(task, index, phase, node) for (task, index), (phase, node) in last.items()]


def choose(states: Sequence[PodState], params: Mapping[str, str]) -> PodPage:
    """The page of `params`: `task`, `phase` and `node` filter, `pods` is the number of the page."""
    filters = {name: params.get(name, "") for name in FILTERS}
    matches = [state for state in states if _matches(state, filters)]
    page = _number(params.get("pods", ""), len(matches))
    part = matches[(page - 1) * ROWS : page * ROWS]
    return PodPage(
        refs=[(task, index) for task, index, _phase, _node in part],
        tasks=sorted({state[0] for state in states}),
        phases=_by_phase(states),
        nodes=sorted({state[3] for state in states} - {""}),
        filters=filters,
        counts={
            task: TaskCount(task, _by_phase([state for state in matches if state[0] == task]))
            for task in dict.fromkeys(task for task, *_rest in part)
        },
        first=(page - 1) * ROWS + 1,
        last=min(page * ROWS, len(matches)),
        count=len(matches),
        page=page,
    )


def query_of(params: Mapping[str, Any]) -> dict[str, str]:
    """The parameters that select the page."""
    return {name: params[name] for name in (*FILTERS, "pods", "since") if params.get(name)}


def _matches(state: PodState, filters: Mapping[str, str]) -> bool:
    task, _index, phase, node = state
    return all(filters[name] in ("", value) for name, value in zip(FILTERS, (task, phase, node), strict=True))


def _number(text: str, count: int) -> int:
    pages = max(1, -(-count // ROWS))
    return min(max(int(text), 1), pages) if text.isdecimal() and text.isascii() and len(text) <= _MOST_DIGITS else 1


def _by_phase(states: Sequence[PodState]) -> list[tuple[str, int]]:
    found = Counter(phase for _task, _index, phase, _node in states)
    return [(phase.value, found[phase.value]) for phase in PodPhase if found[phase.value]]
