"""Creates notifications that depend on time alone and have no event: long waits and coming deletions."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta

from hekla.apps.accounts.models import User
from hekla.apps.event_log.services import unit_of_work
from hekla.apps.jobs import selectors as jobs
from hekla.apps.jobs.models import Job
from hekla.apps.notifications import groups, selectors
from hekla.apps.notifications.choices import Moment
from hekla.apps.notifications.models import JobChoice, Notification
from hekla.apps.notifications.services.telling import JobNotice, tell

BEFORE_DELETION = timedelta(hours=1)
RETENTION = timedelta(days=90)
_MOST = 2_000


def look(*, now: datetime) -> int:
    """Notify of long waits and coming deletions. Returns the number of notifications."""
    with unit_of_work():
        return _tell_all(list(_deletions(now)), now) + _tell_waits(now)


def tidy(*, now: datetime) -> int:
    """Delete notifications older than RETENTION, and choices for jobs without a row. Returns how many of the former."""
    with unit_of_work():
        JobChoice.objects.exclude(job_uid__in=Job.objects.values("uid")).delete()
        old = Notification.objects.filter(at__lt=now - RETENTION).order_by("pk")[:_MOST]
        pks = list(old.values_list("pk", flat=True))
        Notification.objects.filter(pk__in=pks).delete()
    return len(pks)


def _deletions(now: datetime) -> Iterator[JobNotice]:
    for job in jobs.expiring(until=now + BEFORE_DELETION, limit=_MOST):
        assert job.expires_at is not None  # noqa: S101  (the query filters by it)
        key = f"deleting:{job.uid}:{job.expires_at.isoformat()}"
        yield JobNotice(job, Moment.DELETING, key, now, {"expires_at": job.expires_at.isoformat()})


def _tell_waits(now: datetime) -> int:
    """Notify each person by their own limit of a long wait."""
    users, uids = selectors.wanting(Moment.WAITS)
    found = jobs.waiting_of(users, uids, limit=_MOST)
    since = jobs.waiting_since(found)
    listeners = selectors.listeners(found)
    people = _people(found)
    batches = groups.groups_of([job.uid for job in found])
    count = 0
    for job in found:
        for pk, choice in listeners[job.uid].items():
            if now - since[job.pk] >= timedelta(minutes=choice.long_wait_minutes):
                key = f"waits:{job.uid}:{since[job.pk].isoformat()}"
                notice = JobNotice(job, Moment.WAITS, key, now, {"minutes": choice.long_wait_minutes})
                count += tell(notice, {pk: choice}, people, batches, now=now)
    return count


def _tell_all(moments: Sequence[JobNotice], now: datetime) -> int:
    new = _new_notices(moments)
    listeners = selectors.listeners([notice.job for notice in new])
    people = _people([notice.job for notice in new])
    batches = groups.groups_of([notice.job.uid for notice in new])
    return sum(tell(notice, listeners[notice.job.uid], people, batches, now=now) for notice in new)


def _new_notices(moments: Sequence[JobNotice]) -> list[JobNotice]:
    """The notices that nobody has received yet: the conditions last, and are checked again and again."""
    keys = set(Notification.objects.filter(key__in=[notice.key for notice in moments]).values_list("key", flat=True))
    return [notice for notice in moments if notice.key not in keys]


def _people(found: Iterable[Job]) -> dict[int, User]:
    listeners = selectors.listeners(list(found))
    return User.objects.in_bulk({pk for choices in listeners.values() for pk in choices})
