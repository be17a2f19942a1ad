"""What happens to queues. The subject is the queue."""

from hekla.domain.events.base import Changes, Event, Name


class QueueCreated(Event):
    name: Name
    cluster: Name = ""


class QueueChanged(Event):
    name: Name
    changes: Changes


class QueueOpened(Event):
    name: Name


class QueueClosed(Event):
    name: Name


class QueueDrained(Event):
    """From now on it lets nobody in; those that are in it may end."""

    name: Name
