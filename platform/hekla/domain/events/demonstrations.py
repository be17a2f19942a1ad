"""Demonstrations. The subject is their run."""

from hekla.domain.events.base import Event, Name


class DemonstrationStarted(Event):
    name: Name


class DemonstrationEnded(Event):
    """All jobs of the run are over."""

    name: Name
