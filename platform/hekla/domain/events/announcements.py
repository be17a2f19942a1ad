"""Events of announcements. The subject is the announcement; `name`: the beginning of its text."""

from hekla.domain.events.base import Event, Name


class AnnouncementCreated(Event):
    name: Name
    level: Name


class AnnouncementDeleted(Event):
    name: Name
