"""Events of a job in groups: "10 pods placed on 2 nodes" in place of ten lines."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from hekla.apps.job_history.history import TimelineEntry
from hekla.apps.sentences import together

_LEAST = 3
"""Fewer events of a kind stay lines of their own."""
_LONGEST = timedelta(minutes=1)
"""The time that a group covers."""


@dataclass(frozen=True, slots=True)
class EventGroup:
    """A line, and the events that it sums up, newest first: none if it is a single event."""

    entry: TimelineEntry
    sentence: str
    members: Sequence[TimelineEntry] = ()


def grouped(entries: Iterable[TimelineEntry]) -> list[EventGroup]:
    """The events, newest first. What several pods did within a minute is one group, whatever else happened meanwhile.

    A group stands where its newest event stood. A pod is in a group once: its next attempt is in another.
    """
    events = list(entries)
    return list(_summed_up(events, _alike(events)))


def _alike(events: Iterable[TimelineEntry]) -> dict[int, list[TimelineEntry]]:
    """By the number of each event about a pod: its group, newest first."""
    found: dict[int, list[TimelineEntry]] = {}
    newest: dict[tuple[str, str], list[TimelineEntry]] = {}
    pods: dict[tuple[str, str], set[str]] = {}
    for entry in events:
        if entry.step is None:
            continue
        key = entry.step.kind, entry.step.detail
        if key not in newest or newest[key][0].at - entry.at > _LONGEST or entry.step.pod in pods[key]:
            newest[key], pods[key] = [], set()
        newest[key].append(entry)
        pods[key].add(entry.step.pod)
        found[entry.number] = newest[key]
    return found


def _summed_up(events: Iterable[TimelineEntry], alike: Mapping[int, Sequence[TimelineEntry]]) -> Iterator[EventGroup]:
    for entry in events:
        group = alike.get(entry.number, ())
        if len(group) < _LEAST:
            yield EventGroup(entry, entry.sentence)
        elif group[0] is entry:
            yield EventGroup(entry, _sentence(group), group)


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
