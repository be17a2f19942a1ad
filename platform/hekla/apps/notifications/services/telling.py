"""Creates notifications with their deliveries: once per person and key."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings

from hekla.apps.accounts.models import User
from hekla.apps.jobs import selectors as jobs
from hekla.apps.jobs.models import Job
from hekla.apps.notifications import wake
from hekla.apps.notifications.choices import Channel, Moment
from hekla.apps.notifications.models import Delivery, Notification, Preference
from hekla.apps.notifications.selectors import Choice, preference
from hekla.apps.notifications.signals import changed_for

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


def tell(notice: JobNotice, listeners: dict[int, Choice], people: dict[int, User], *, now: datetime) -> int:
    """Notify the listeners who chose this moment and may see the job. Call in a unit of work.

    Returns the number of new notifications.
    """
    wanting = [pk for pk, choice in listeners.items() if notice.moment in choice.moments and pk in people]
    return sum(_tell_one(notice, people[pk], listeners[pk], now) for pk in wanting if _may_see(people[pk], notice.job))


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
