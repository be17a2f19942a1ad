"""A person asks the owner of a job to look at it: it seems stalled, or holds GPUs that it does not use.

The event is the record; whoever follows the log notifies the owner.
"""

from datetime import datetime, timedelta

from django.utils.translation import gettext as _

from hekla.apps.accounts import selectors as accounts
from hekla.apps.accounts.models import User
from hekla.apps.accounts.roles import Permission
from hekla.apps.accounts.services import actor_of
from hekla.apps.event_log import changes
from hekla.apps.event_log import selectors as event_log
from hekla.apps.event_log.services import unit_of_work
from hekla.apps.jobs.models import Job
from hekla.apps.jobs.services.telling import tell
from hekla.apps.tenancy import selectors as tenancy
from hekla.domain import events
from hekla.domain.errors import Forbidden, Refused
from hekla.domain.stalls import ReminderCause

_PAUSE = timedelta(days=1)
"""At most one reminder of a job in this time, whoever asks."""


def may_remind(user: User, job: Job) -> bool:
    """Whether the person may ask the owner of this job to look at it: not the owner, and not whoever may only view."""
    if job.owner_id == user.pk:
        return False
    sees_all = accounts.may(user, Permission.SEE_EVERYTHING)
    return sees_all or job.tenant_id in tenancy.rights(user).where(Permission.SUBMIT_JOBS)


def require_reminder_right(job: Job, user: User) -> None:
    """Raises Forbidden if the person may not ask the owner."""
    if not may_remind(user, job):
        raise Forbidden(_("Only other people who may submit jobs for the tenant, and operators, can do this."))


def remind_owner(job: Job, cause: ReminderCause, *, user: User, now: datetime) -> None:
    """Ask the owner to look at an unfinished job. Raises Forbidden; Refused if they were asked less than a day ago."""
    require_reminder_right(job, user)
    with unit_of_work():
        job = changes.locked(job)
        if job.is_final or job.deleted_at is not None:
            raise Refused(_("The job has ended."))
        last = event_log.last_of_kind([subject := f"job:{job.uid}"], "OwnerReminded").get(subject)
        if last is not None and last > now - _PAUSE:
            raise Refused(_("The owner was asked already in the last 24 hours."))
        tell(job, events.OwnerReminded(cause=cause), actor=actor_of(user), now=now)
