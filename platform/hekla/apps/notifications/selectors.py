"""What people chose, and what they were told."""

from collections.abc import Collection
from datetime import datetime
from uuid import UUID

from django.db.models import Prefetch, Q, QuerySet

from hekla.apps.accounts.models import User
from hekla.apps.event_log import selectors as event_log
from hekla.apps.jobs.models import Job
from hekla.apps.notifications.choices import Moment
from hekla.apps.notifications.models import Delivery, JobChoice, Notification, Preference, Reader
from hekla.apps.tenancy import selectors as tenancy

Choice = Preference | JobChoice


def preference(user: User) -> Preference:
    """What holds for a person's jobs; the defaults where they chose nothing (not stored)."""
    return Preference.objects.filter(user=user).first() or Preference(user=user, mail=user.email)


def job_choice(user: User, job: Job) -> JobChoice | None:
    """What a person chose for this job."""
    return JobChoice.objects.filter(user=user, job_uid=job.uid).first()


def visible_to(user: User) -> QuerySet[Notification]:
    """What a person finds in the page, newest first; not of tenants that they have left."""
    deliveries = Prefetch("deliveries", Delivery.objects.order_by("channel"))
    visible = Q(tenant_id=None) | Q(tenant_id__in=tenancy.visible_to(user).values("pk"))
    return Notification.objects.filter(visible, user=user, in_page=True).order_by("-id").prefetch_related(deliveries)


def unread(user: User, *, most: int = 100) -> int:
    """How many of them they have not read, counted up to `most`."""
    return len(visible_to(user).prefetch_related(None).filter(read_at=None).values_list("pk")[:most])


def is_behind() -> bool:
    """Whether something happened of which it was not decided yet who is told."""
    number = Reader.objects.values_list("number", flat=True).first()
    return number is not None and number < event_log.last_number()


def next_delivery() -> datetime | None:
    """When the next delivery is due, maybe in the past; None: there is none."""
    waiting = Delivery.objects.filter(sent_at=None, abandoned_at=None).order_by("due_at")
    return waiting.values_list("due_at", flat=True).first()


def listeners(jobs: Collection[Job]) -> dict[UUID, dict[int, Choice]]:
    """Who wants to hear of these jobs: by job and person what they chose. Owners hear unless they chose otherwise."""
    owners = {job.owner_id for job in jobs}
    defaults = {one.user_id: one for one in Preference.objects.filter(user__in=owners)}
    found: dict[UUID, dict[int, Choice]] = {
        job.uid: {job.owner_id: defaults.get(job.owner_id) or Preference(user_id=job.owner_id)} for job in jobs
    }
    for choice in JobChoice.objects.filter(job_uid__in=list(found)):
        found[choice.job_uid][choice.user_id] = choice
    return found


def wanting(moment: Moment) -> tuple[list[int], list[UUID]]:
    """Whose jobs, and which jobs, somebody wants to hear this of."""
    users = Preference.objects.filter(moments__contains=[moment]).values_list("user_id", flat=True)
    uids = JobChoice.objects.filter(moments__contains=[moment]).values_list("job_uid", flat=True)
    return list(users), list(uids)
