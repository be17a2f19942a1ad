"""What happens to priority classes. The subject is the class."""

from hekla.domain.events.base import Changes, Event, Name


class PriorityClassCreated(Event):
    name: Name
    value: int


class PriorityClassChanged(Event):
    name: Name
    changes: Changes


class PriorityClassDeleted(Event):
    name: Name
