"""Reading the log, by number and by subject."""

from collections.abc import Iterable, Sequence

from django.db.models import QuerySet

from hekla.apps.outbox.models import Event, Numbering


def last_number() -> int:
    """The number of the newest event; 0 before the first."""
    return Event.objects.order_by("-id").values_list("id", flat=True).first() or 0


def after(number: int, *, limit: int) -> Sequence[Event]:
    """The events that follow `number`, at most `limit`, in order."""
    return list(Event.objects.filter(id__gt=number).order_by("id")[:limit])


def subjects(number: int, last: int, *, topic: str, limit: int) -> set[str] | None:
    """What the events of a topic after `number` up to `last` are about. None: there are more than `limit` of them."""
    found = Event.objects.filter(id__gt=number, id__lte=last, topics__contains=[topic])
    subjects = found.order_by("id").values_list("subject", flat=True)[: limit + 1]
    return set(subjects) if len(subjects) <= limit else None


def count_after(number: int, topics: Iterable[str], *, limit: int = 1000) -> int:
    """How many events of these topics follow `number`, counted up to `limit`."""
    return len(Event.objects.filter(id__gt=number, topics__overlap=list(topics)).values_list("id")[:limit])


def lost() -> int:
    """How many numbers stand for no event though nobody purged it: more than none is a fault."""
    numbering = Numbering.objects.first()
    return numbering.last - numbering.purged - Event.objects.count() if numbering else Event.objects.count()


def about(subject: str) -> QuerySet[Event]:
    """Everything that happened to one thing, oldest first."""
    return Event.objects.filter(subject=subject).order_by("id")
