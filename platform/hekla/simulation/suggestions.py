"""Suggested changes with which a job starts now: the smallest change of each kind, each tried before."""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from hekla.domain.errors import Invalid
from hekla.domain.jobspec import JobSpec
from hekla.domain.resources import format_quantity
from hekla.domain.spec_changes import SpecChange, SpecField, apply_changes
from hekla.domain.task_spec import TaskSpec

MOST = 5
_MOST_TASKS = 3
_MOST_QUEUES = 2
_MOST_TRIALS = 40
_PARTS = (0.75, 0.5, 0.25, 0.125)
_ROUNDING = {"cpu": 100, "memory": 64 * 2**20}
_WEIGHT = {
    SpecField.QUEUE: (0.0, 0.0),
    SpecField.LEAST: (0.1, 0.3),
    SpecField.SELECTOR: (0.2, 0.0),
    SpecField.RESOURCE: (0.2, 0.7),
    SpecField.REPLICAS: (0.3, 0.7),
}
"""The weight of the smallest change of a kind, and how much is added if everything is given up."""

Changes = tuple[SpecChange, ...]
Trial = Callable[[JobSpec, Changes], int | None]
"""How many pods would be evicted if the job started with these changes; None: it would not start."""


@dataclass(frozen=True, slots=True)
class Suggestion:
    """Changes with which the job starts, as the engine found, and how many pods of others would be evicted."""

    changes: Changes
    evicted: int = 0

    def __str__(self) -> str:
        return ",".join(map(str, self.changes))


@dataclass(frozen=True, slots=True)
class SuggestionResult:
    """The suggestions, the smallest change first. `is_cut_short`: there was no time to try all."""

    offers: list[Suggestion]
    is_cut_short: bool


def offers(spec: JobSpec, queues: Sequence[str], trial: Trial, *, until: float, takes: float = 0.0) -> SuggestionResult:
    """The smallest changes with which the job starts. `queues`: other queues that it might use.

    `until`, on the monotonic clock: no trial starts that would probably end later. `takes`: the expected seconds of the
    first trial.
    """
    trials = _Trials(spec, trial, until, takes)
    elsewhere: list[list[Changes]] = [[(SpecChange(SpecField.QUEUE, name),)] for name in queues]
    found = trials.all_of([*elsewhere, *_ladders(spec)]) or trials.all_of(_both(spec))
    ordered = sorted(found, key=lambda offer: (offer.evicted > 0, _weight(spec, offer.changes)))
    too_many = [offer for offer in ordered if offer.changes[0].lever is SpecField.QUEUE][_MOST_QUEUES:]
    return SuggestionResult([offer for offer in ordered if offer not in too_many][:MOST], trials.is_cut_short)


class _Trials:
    """Trials, limited in number and time."""

    def __init__(self, spec: JobSpec, trial: Trial, until: float, takes: float) -> None:
        self._spec, self._trial, self._left, self._until = spec, trial, _MOST_TRIALS, until
        self._longest, self.is_cut_short = takes, False

    def all_of(self, ladders: Iterable[Sequence[Changes]]) -> list[Suggestion]:
        """The smallest change of each list with which the job starts."""
        return [offer for ladder in ladders if (offer := self.smallest(ladder))]

    def smallest(self, ladder: Sequence[Changes]) -> Suggestion | None:
        """The first of these changes, in ascending order, with which the job starts; the largest is tried first."""
        if not ladder or (best := self._try(ladder[-1])) is None:
            return None
        low, high = 0, len(ladder) - 1
        while low < high:
            middle = (low + high) // 2
            if (found := self._try(ladder[middle])) is None:
                low = middle + 1
            else:
                high, best = middle, found
        return best

    def _try(self, changes: Changes) -> Suggestion | None:
        began = time.monotonic()
        if began + self._longest > self._until:
            self.is_cut_short = True
        if self._left <= 0 or self.is_cut_short:
            return None
        self._left -= 1
        try:
            evicted = self._trial(apply_changes(self._spec, changes), changes)
        except Invalid:
            return None
        finally:
            self._longest = max(self._longest, time.monotonic() - began)
        return None if evicted is None else Suggestion(changes, evicted)


def _ladders(spec: JobSpec) -> Iterator[list[Changes]]:
    """For each property that can be changed by degrees, its changes in ascending order."""
    for task in _largest(spec):
        for ladder in (_least(task), _replicas(task), *_resources(task)):
            yield [(change,) for change in ladder]
        if task.node_selector:
            yield [(SpecChange(SpecField.SELECTOR, task=task.name),)]


def _both(spec: JobSpec) -> Iterator[list[Changes]]:
    """Fewer pods that are also smaller, where neither alone suffices."""
    for task in _largest(spec):
        for fewer in _replicas(task)[-1:]:
            for ladder in _resources(task):
                yield [(fewer, smaller) for smaller in ladder]


def _largest(spec: JobSpec) -> list[TaskSpec]:
    """The tasks with the most replicas."""
    return sorted((task for task in spec.tasks if task.replicas), key=lambda task: -task.replicas)[:_MOST_TASKS]


def _least(task: TaskSpec) -> list[SpecChange]:
    return [SpecChange(SpecField.LEAST, str(count), task.name) for count in range(task.minimum - 1, 0, -1)]


def _replicas(task: TaskSpec) -> list[SpecChange]:
    return [SpecChange(SpecField.REPLICAS, str(count), task.name) for count in range(task.replicas - 1, 0, -1)]


def _resources(task: TaskSpec) -> Iterator[list[SpecChange]]:
    for name, amount in task.request.items():
        smaller = _parts(amount, _ROUNDING[name]) if name in _ROUNDING else _whole(amount)
        yield [SpecChange(SpecField.RESOURCE, format_quantity(name, value), task.name, name) for value in smaller]


def _parts(amount: float, unit: float) -> list[float]:
    """Rounded parts of an amount, each at least one unit."""
    rounded = (amount * part // unit * unit for part in _PARTS)
    return list(dict.fromkeys(value for value in rounded if unit <= value < amount))


def _whole(amount: float) -> list[float]:
    """Fewer whole devices, at least one."""
    return [float(count * 1000) for count in range(int(amount // 1000), 0, -1) if count * 1000 < amount]


def _weight(spec: JobSpec, changes: Changes) -> float:
    return sum(least + more * _cost(spec, change) for change in changes for least, more in [_WEIGHT[change.lever]])


def _cost(spec: JobSpec, change: SpecChange) -> float:
    """Which part of the request is given up, from 0 to 1."""
    if change.lever in (SpecField.QUEUE, SpecField.SELECTOR):
        return 0.0
    old, new = spec.task(change.task), change.applied(spec).task(change.task)
    if change.lever is SpecField.RESOURCE:
        before, after = old.request.amount(change.resource), new.request.amount(change.resource)
    elif change.lever is SpecField.REPLICAS:
        before, after = old.replicas, new.replicas
    else:
        before, after = old.minimum, new.minimum
    return 1 - after / before if before else 0.0
