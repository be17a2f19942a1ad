"""Creates notifications that depend on time alone and have no event: long waits and coming deletions."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from uuid import UUID

from hekla.apps.event_log.services import unit_of_work
from hekla.apps.jobs import selectors as jobs
from hekla.apps.jobs.models import Job
from hekla.apps.notifications import groups, selectors
from hekla.apps.notifications.choices import Moment
from hekla.apps.notifications.groups import JobGroup
from hekla.apps.notifications.models import JobChoice, Notification
from hekla.apps.notifications.services.telling import JobNotice, group_key, tell_all

RETENTION = timedelta(days=90)
_MOST = 2_000


def look(*, now: datetime) -> int:
    """Notify of long waits and coming deletions. Returns the number of notifications."""
    with unit_of_work():
        return _tell_of_deletions(now) + _tell_waits(now)


def tidy(*, now: datetime) -> int:
    """Delete notifications older than RETENTION, and choices for jobs without a row. Returns how many of the former."""
    with unit_of_work():
        JobChoice.objects.exclude(job_uid__in=Job.objects.values("uid")).delete()
        old = Notification.objects.filter(at__lt=now - RETENTION).order_by("pk")[:_MOST]
        pks = list(old.values_list("pk", flat=True))
        Notification.objects.filter(pk__in=pks).delete()
    return len(pks)


def _deletions(now: datetime) -> Iterator[JobNotice]:
    for job in jobs.expiring(until=now + selectors.BEFORE_DELETION, limit=_MOST):
        assert job.expires_at is not None  # noqa: S101  (the query filters by it)
        key = f"deleting:{job.uid}:{job.expires_at.isoformat()}"
        yield JobNotice(job, Moment.DELETING, key, now, {"expires_at": job.expires_at.isoformat()})


def _tell_waits(now: datetime) -> int:
    """Notify each person by their own limit of a long wait."""
    users, uids = selectors.wanting(Moment.WAITS)
    found = jobs.waiting_of(users, uids, limit=_MOST)
    since = jobs.waiting_since(found)
    listeners = selectors.listeners(found)
    batches = groups.groups_of([job.uid for job in found])
    keys = {job.uid: f"waits:{job.uid}:{since[job.pk].isoformat()}" for job in found}
    known = _known(keys.values(), Moment.WAITS, batches)
    notices = (
        (JobNotice(job, Moment.WAITS, keys[job.uid], now, {"minutes": choice.long_wait_minutes}), {pk: choice})
        for job in found
        for pk, choice in listeners[job.uid].items()
        if now - since[job.pk] >= timedelta(minutes=choice.long_wait_minutes)
    )
    return tell_all(notices, batches, known, now=now)


def _tell_of_deletions(now: datetime) -> int:
    notices = list(_deletions(now))
    listeners = selectors.listeners([notice.job for notice in notices])
    batches = groups.groups_of([notice.job.uid for notice in notices])
    known = _known([notice.key for notice in notices], Moment.DELETING, batches)
    return tell_all(((notice, listeners[notice.job.uid]) for notice in notices), batches, known, now=now)


def _known(keys: Iterable[str], moment: Moment, batches: Mapping[UUID, JobGroup]) -> set[tuple[int, str]]:
    """Who (row id) has which of these notifications: the conditions last, and are checked again and again."""
    of_groups = (group_key(moment, uid) for uid, _name in batches.values())
    return set(Notification.objects.filter(key__in={*keys, *of_groups}).values_list("user_id", "key"))
