"""Creates notifications with their deliveries: once per person and key."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.conf import settings

from hekla.apps.accounts.models import User
from hekla.apps.jobs import selectors as jobs
from hekla.apps.jobs.models import Job
from hekla.apps.notifications import wake
from hekla.apps.notifications.choices import Channel, Moment
from hekla.apps.notifications.groups import JobGroup
from hekla.apps.notifications.models import Delivery, JobChoice, Notification, Preference
from hekla.apps.notifications.selectors import Choice, preference
from hekla.apps.notifications.signals import changed_for
from hekla.apps.tenancy import selectors as tenancy
from hekla.apps.tenancy.models import Tenant

DIGEST = timedelta(minutes=15)
"""How long the first mail waits for others, for people with grouped mail."""


@dataclass(frozen=True, slots=True)
class JobNotice:
    """An occasion to notify of a job. `key`: the same each time that the occasion is found."""

    job: Job
    moment: Moment
    key: str
    at: datetime
    facts: dict[str, Any] = field(default_factory=dict)


def tell_all(
    notices: Iterable[tuple[JobNotice, Mapping[int, Choice]]],
    groups: Mapping[UUID, JobGroup],
    known: Collection[tuple[int, str]] = frozenset(),
    *,
    now: datetime,
) -> int:
    """Notify those of the listeners of each notice who chose its moment and may see the job. Call in a unit of work.

    `groups`: the groups of the jobs that are in one. Who chose nothing for a job itself gets one notification of each
    moment for the whole group; `tell_of_batch` tells of its end. `known`: person (row id) and key of what is written
    already. The number of queries does not grow with that of the notices, only with that of the people who get one.
    Returns the number of new notifications.
    """
    wanted: dict[tuple[int, str], tuple[JobNotice, Choice]] = {}
    for pk, notice, choice in _wanted(notices, groups):
        if (pk, notice.key) not in known:
            wanted.setdefault((pk, notice.key), (notice, choice))
    people = User.objects.in_bulk({pk for pk, _key in wanted})
    may_see = {pk: jobs.knowing(user, tenancy.rights(user)) for pk, user in people.items() if user.is_active}
    rows = [
        _row(notice, pk, choice)
        for (pk, _key), (notice, choice) in wanted.items()
        if pk in may_see and may_see[pk](notice.job)
    ]
    return _write(rows, now)


def _wanted(
    notices: Iterable[tuple[JobNotice, Mapping[int, Choice]]], groups: Mapping[UUID, JobGroup]
) -> Iterator[tuple[int, JobNotice, Choice]]:
    """Which person (row id) wants which notice, and by which choice."""
    for notice, listeners in notices:
        grouped = _for_group(notice, groups.get(notice.job.uid))
        for pk, choice in listeners.items():
            found = grouped if isinstance(choice, Preference) else notice
            if found and found.moment in choice.moments:
                yield pk, found, choice


def _for_group(notice: JobNotice, group: JobGroup | None) -> JobNotice | None:
    """The same for the group of the job: its first notice of this moment; None if another tells of it."""
    if group is None or notice.moment is Moment.EVICTED:
        return notice
    if notice.moment in {Moment.ENDED, Moment.FAILED}:
        return None
    uid, name = group
    facts = {**notice.facts, "batch": str(uid), "batch_name": name}
    return replace(notice, key=group_key(notice.moment, uid), facts=facts)


def group_key(moment: Moment, group: UUID) -> str:
    """The key of the notification of this moment for a whole group of jobs."""
    return f"{moment}:batch:{group}"


def tell_of_batch(
    people: Collection[User],
    moments: Collection[Moment],
    *,
    key: str,
    tenant: Tenant,
    facts: dict[str, Any],
    now: datetime,
) -> int:
    """Notify these people of the end of a batch if they want to know of the end, or of a failure, of its jobs.

    `moments`: which of both occurred. Call in a unit of work. Returns the number of new notifications.
    """
    moment = Moment.FAILED if Moment.FAILED in moments else Moment.ENDED
    count = 0
    for user in people:
        choice = preference(user)
        may_see = user.is_active and tenancy.visible_to(user).filter(pk=tenant.pk).exists()
        if may_see and not {*moments}.isdisjoint(choice.moments):
            row: dict[str, Any] = {"moment": moment, "at": now, "tenant_id": tenant.pk, "facts": facts}
            in_page = Channel.PAGE in choice.channels
            count += _write([_Row(Notification(user=user, key=key, in_page=in_page, **row), choice)], now)
    return count


def tell_of_themselves(
    user: User,
    moment: Moment,
    key: str,
    *,
    at: datetime,
    facts: dict[str, Any],
    always_mail: bool = False,
    mail: str = "",
) -> bool:
    """Notify a person of something about themselves, always in the page too. Call in a unit of work.

    `always_mail`: by mail as well, at once, if the person has an address. `mail`: to this address instead.
    Returns whether the notification is new.
    """
    choice = preference(user)
    if always_mail and (mail or choice.mail) and settings.MAIL_IS_SET_UP:
        choice.channels, choice.is_digest = [*{*choice.channels, Channel.MAIL}], False
    row = Notification(user=user, key=key, moment=moment, at=at, facts=facts, in_page=True)
    return bool(_write([_Row(row, choice, mail)], at))


def _row(notice: JobNotice, pk: int, choice: Choice) -> "_Row":
    facts: dict[str, Any] = {
        "moment": notice.moment, "at": notice.at, "job_uid": notice.job.uid, "job_name": notice.job.name,
        "tenant_id": notice.job.tenant_id, "facts": notice.facts, "in_page": Channel.PAGE in choice.channels,
    }  # fmt: skip
    return _Row(Notification(user_id=pk, key=notice.key, **facts), choice)


@dataclass(frozen=True, slots=True)
class _Row:
    """A notification to write, and the choice with its channels. `mail`: to this address instead."""

    notification: Notification
    choice: Choice
    mail: str = ""

    @property
    def identity(self) -> tuple[int, str]:
        """The person's row id and the key."""
        return self.notification.user_id, self.notification.key


def _write(rows: Sequence[_Row], now: datetime) -> int:
    """Write those that are not written yet, with their deliveries. Returns their number."""
    written = _stored(rows)
    rows = sorted((row for row in rows if row.identity not in written), key=lambda row: row.identity)  # no deadlocks
    if not rows:
        return 0
    # Another process may write the same now; then both find it here, and only one writes its deliveries.
    Notification.objects.bulk_create((row.notification for row in rows), ignore_conflicts=True)
    stored = _stored(rows)
    grouped = _with_grouped_mail(rows)
    deliveries = [one for row in rows for one in _deliveries(row, stored[row.identity], grouped, now)]
    Delivery.objects.bulk_create(deliveries, ignore_conflicts=True)
    for due in {delivery.due_at for delivery in deliveries}:
        wake.send_at(due, now=now)
    for person in {row.notification.user_id for row in rows}:
        changed_for(person)
    return len(rows)


def _stored(rows: Sequence[_Row]) -> dict[tuple[int, str], int]:
    """The row ids of those of these notifications that are stored."""
    people, keys = {row.notification.user_id for row in rows}, {row.notification.key for row in rows}
    found = Notification.objects.filter(user__in=people, key__in=keys)
    return {(user, key): pk for user, key, pk in found.values_list("user_id", "key", "pk")}


def _with_grouped_mail(rows: Sequence[_Row]) -> set[int]:
    """The people (row ids) whose mails wait for others. A choice for one job does not say so, their defaults do."""
    by_job = {row.notification.user_id for row in rows if isinstance(row.choice, JobChoice)}
    stored = Preference.objects.filter(user__in=by_job, is_digest=True).values_list("user_id", flat=True)
    own = (row for row in rows if isinstance(row.choice, Preference) and row.choice.is_digest)
    return {*(stored if by_job else ()), *(row.notification.user_id for row in own)}


def _deliveries(row: _Row, notification: int, grouped: Collection[int], now: datetime) -> Iterator[Delivery]:
    wait = DIGEST if row.notification.user_id in grouped else timedelta()
    for channel, due in ((Channel.MAIL, now + wait), (Channel.WEBHOOK, now)):
        if channel in row.choice.channels:
            yield Delivery(notification_id=notification, channel=channel, due_at=due, mail=row.mail)
