"""Events of a job in groups: "10 pods placed on 2 nodes" in place of ten lines."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from hekla.apps.job_history.history import PodStep, TimelineEntry
from hekla.apps.sentences import together

_LEAST = 3
"""Fewer events of a kind stay lines of their own."""


@dataclass(frozen=True, slots=True)
class EventGroup:
    """A line, and the events that it sums up, newest first: none if it is a single event."""

    entry: TimelineEntry
    sentence: str
    members: Sequence[TimelineEntry] = ()


def grouped(entries: Iterable[TimelineEntry]) -> list[EventGroup]:
    """The events, newest first, with those about pods summed up between two events about anything else.

    A group stands where its newest event stood.
    """
    found: list[EventGroup] = []
    for is_about_pods, run in groupby(entries, key=lambda entry: entry.step is not None):
        members = list(run)
        found += _summed_up(members) if is_about_pods else [EventGroup(one, one.sentence) for one in members]
    return found


def _summed_up(run: Sequence[TimelineEntry]) -> Iterator[EventGroup]:
    kinds: dict[tuple[str, str], list[TimelineEntry]] = {}
    for entry in run:
        kinds.setdefault(_key(entry.step), []).append(entry)
    for entry in run:
        alike = kinds[_key(entry.step)]
        if len(alike) < _LEAST:
            yield EventGroup(entry, entry.sentence)
        elif alike[0] is entry:
            yield EventGroup(entry, _sentence(alike), alike)


def _key(step: PodStep | None) -> tuple[str, str]:
    return (step.kind, step.detail) if step else ("", "")


def _sentence(alike: Sequence[TimelineEntry]) -> str:
    steps = [entry.step for entry in alike if entry.step]
    pods, nodes = len({step.pod for step in steps}), len({step.node for step in steps if step.node})
    step = steps[0]
    if step.kind == "bound":
        placed = ngettext("%(n)d pod placed", "%(n)d pods placed", pods) % {"n": pods}
        return _("%(pods)s on %(nodes)s.") % {"pods": placed, "nodes": _nodes(nodes)}
    return together([_SENTENCES[step.kind](pods) % {"n": pods}, step.detail])


def _nodes(count: int) -> str:
    return ngettext("%(n)d node", "%(n)d nodes", count) % {"n": count}


_SENTENCES = {
    "pending": lambda n: ngettext("%(n)d pod could not be bound.", "%(n)d pods could not be bound.", n),
    "preparing": lambda n: ngettext("%(n)d pod is preparing.", "%(n)d pods are preparing.", n),
    "running": lambda n: ngettext("%(n)d pod started to run.", "%(n)d pods started to run.", n),
    "succeeded": lambda n: ngettext("%(n)d pod succeeded.", "%(n)d pods succeeded.", n),
    "failed": lambda n: ngettext("%(n)d pod failed.", "%(n)d pods failed.", n),
    "stopped": lambda n: ngettext("%(n)d pod stopped on request.", "%(n)d pods stopped on request.", n),
    "lost": lambda n: ngettext("%(n)d pod was lost.", "%(n)d pods were lost.", n),
}
