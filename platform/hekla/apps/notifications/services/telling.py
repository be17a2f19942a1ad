"""Creates notifications with their deliveries: once per person and key."""

from collections.abc import Collection, Mapping
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
from hekla.apps.notifications.models import Delivery, Notification, Preference
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


def tell(
    notice: JobNotice,
    listeners: dict[int, Choice],
    people: dict[int, User],
    groups: Mapping[UUID, JobGroup],
    known: set[tuple[int, str]],
    *,
    now: datetime,
) -> int:
    """Notify the listeners who chose this moment and may see the job. Call in a unit of work.

    `groups`: the group of the job, if it is in one. Who chose nothing for this job itself gets one notification of
    each moment for the whole group; `tell_of_batch` tells of its end. `known`: person (row id) and key of what needs no
    query; those of this call are added. Returns the number of new notifications.
    """
    grouped = _for_group(notice, groups.get(notice.job.uid))
    count = 0
    for pk, choice in listeners.items():
        found = grouped if isinstance(choice, Preference) else notice
        if not found or found.moment not in choice.moments or pk not in people or (pk, found.key) in known:
            continue
        if _may_see(people[pk], found.job):
            count += _tell_one(found, people[pk], choice, now)
            known.add((pk, found.key))
    return count


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
            row = {"moment": moment, "at": now, "tenant_id": tenant.pk, "facts": facts}
            count += _write(user, key, choice, now, {**row, "in_page": Channel.PAGE in choice.channels})
    return count


def _may_see(user: User, job: Job) -> bool:
    return user.is_active and jobs.known_to(user).filter(pk=job.pk).exists()


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
    return _write(user, key, choice, at, {"moment": moment, "at": at, "facts": facts, "in_page": True}, mail)


def _tell_one(notice: JobNotice, user: User, choice: Choice, now: datetime) -> bool:
    facts = {
        "moment": notice.moment, "at": notice.at, "job_uid": notice.job.uid, "job_name": notice.job.name,
        "tenant_id": notice.job.tenant_id, "facts": notice.facts, "in_page": Channel.PAGE in choice.channels,
    }  # fmt: skip
    return _write(user, notice.key, choice, now, facts)


def _write(user: User, key: str, choice: Choice, now: datetime, facts: dict[str, Any], mail: str = "") -> bool:
    made, is_new = Notification.objects.get_or_create(user=user, key=key, defaults=facts)
    if is_new:
        reach = choice if isinstance(choice, Preference) else Preference.objects.filter(user=user).first()
        wait = DIGEST if reach and reach.is_digest else timedelta()
        channels = [channel for channel in (Channel.MAIL, Channel.WEBHOOK) if channel in choice.channels]
        due = {Channel.MAIL: now + wait, Channel.WEBHOOK: now}
        Delivery.objects.bulk_create(
            [Delivery(notification=made, channel=channel, due_at=due[channel], mail=mail) for channel in channels]
        )
        for channel in channels:
            wake.send_at(due[channel], now=now)
        changed_for(user.pk)
    return is_new
