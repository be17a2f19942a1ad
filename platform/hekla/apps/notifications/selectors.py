"""Queries for notification settings, notifications and deliveries."""

from collections.abc import Collection
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db.models import Exists, OuterRef, Prefetch, Q, QuerySet

from hekla.apps import due_work
from hekla.apps.accounts.models import User
from hekla.apps.event_log import selectors as event_log
from hekla.apps.event_log.models import Numbering
from hekla.apps.jobs.models import Job
from hekla.apps.notifications.choices import Channel, Moment
from hekla.apps.notifications.models import Delivery, JobChoice, Notification, NotificationCursor, Preference
from hekla.apps.outboxes import RECENT, OutboxFacts, outbox_facts
from hekla.apps.tenancy import selectors as tenancy
from hekla.domain.phases import JobPhase

Choice = Preference | JobChoice
BEFORE_DELETION = timedelta(hours=1)
"""How long before the deletion of a job its people are notified."""


def preference(user: User) -> Preference:
    """The person's settings for their jobs; if none are stored, the defaults, unsaved."""
    return Preference.objects.filter(user=user).first() or Preference(user=user, mail=user.email)


def job_choice(user: User, job: Job) -> JobChoice | None:
    """The person's choice for this job, or None."""
    return JobChoice.objects.filter(user=user, job_uid=job.uid).first()


def visible_to(user: User) -> QuerySet[Notification]:
    """The person's notifications in the page, newest first; without those of tenants that they may not see now."""
    deliveries = Prefetch("deliveries", Delivery.objects.order_by("channel"))
    visible = Q(tenant_id=None) | Q(tenant_id__in=tenancy.visible_to(user).values("pk"))
    return Notification.objects.filter(visible, user=user, in_page=True).order_by("-id").prefetch_related(deliveries)


def unread(user: User, *, most: int = 100) -> int:
    """The number of unread notifications in the page, counted up to `most`."""
    return len(visible_to(user).prefetch_related(None).filter(read_at=None).values_list("pk")[:most])


def is_behind() -> bool:
    """Whether the log has events that were not processed yet."""
    number = NotificationCursor.objects.values_list("number", flat=True).first()
    return number is not None and number < event_log.last_number()


def next_delivery() -> datetime | None:
    """When the next delivery is due, possibly in the past; None if there is none."""
    return _undelivered().order_by("due_at").values_list("due_at", flat=True).first()


def reader_position() -> int | None:
    """The number of the last event of the log that was processed; None if none was yet."""
    return NotificationCursor.objects.values_list("number", flat=True).first()


def outbox_counts(now: datetime) -> dict[str, OutboxFacts]:
    """What waits to be sent, by channel; `abandoned` counts the last day."""
    found = {}
    for channel in (Channel.MAIL, Channel.WEBHOOK):
        abandoned = Delivery.objects.filter(channel=channel, abandoned_at__gte=now - RECENT)
        found[channel.value] = outbox_facts(_undelivered().filter(channel=channel), abandoned, now)
    return found


def listeners(jobs: Collection[Job]) -> dict[UUID, dict[int, Choice]]:
    """The choices for these jobs, by job (uid) and person (id): defaults of owners, and choices for single jobs."""
    owners = {job.owner_id for job in jobs}
    defaults = {one.user_id: one for one in Preference.objects.filter(user__in=owners)}
    found: dict[UUID, dict[int, Choice]] = {
        job.uid: {job.owner_id: defaults.get(job.owner_id) or Preference(user_id=job.owner_id)} for job in jobs
    }
    for choice in JobChoice.objects.filter(job_uid__in=list(found)):
        found[choice.job_uid][choice.user_id] = choice
    return found


def wanting(moment: Moment) -> tuple[list[int], list[UUID]]:
    """The people (ids) whose defaults contain this moment, and the jobs (uids) with a choice that contains it."""
    users = Preference.objects.filter(moments__contains=[moment]).values_list("user_id", flat=True)
    uids = JobChoice.objects.filter(moments__contains=[moment]).values_list("job_uid", flat=True)
    return list(users), list(uids)


def follow_work() -> list[QuerySet[Any, Any]]:
    """A row if the log has events that were not processed yet (see `due_work`)."""
    position = NotificationCursor.objects.filter(number__gte=OuterRef("last"))
    return [Numbering.objects.filter(~Exists(position))]


def look_work() -> list[QuerySet[Any, Any]]:
    """Jobs that wait, and jobs that are deleted soon (see `due_work`)."""
    jobs = Job.objects.filter(deleted_at=None)
    soon = due_work.present() + BEFORE_DELETION
    return [jobs.filter(phase=JobPhase.PENDING), jobs.filter(expires_at__lte=soon)]


def send_work() -> list[QuerySet[Any, Any]]:
    """Deliveries that are due now or soon (see `due_work`)."""
    return [_undelivered().filter(due_at__lte=due_work.horizon())]


def _undelivered() -> QuerySet[Delivery]:
    return Delivery.objects.filter(sent_at=None, abandoned_at=None)
