"""What a person asks of a job: abort, resume, restart, end, delete."""

from datetime import datetime

from django.utils.translation import gettext as _

from hekla.apps.accounts.models import User
from hekla.apps.accounts.services import actor_of
from hekla.apps.jobs import selectors
from hekla.apps.jobs.models import Job
from hekla.apps.jobs.services.telling import tell
from hekla.apps.jobs.services.transitions import advance
from hekla.apps.outbox.services import unit_of_work
from hekla.domain import events
from hekla.domain.errors import Forbidden, Refused
from hekla.domain.policies import Action


def command(job: Job, action: Action, *, user: User, now: datetime) -> Job:
    """Carry out a person's wish. Raises Refused where their role or the job's phase does not allow it."""
    _require_right(job, user)
    with unit_of_work():
        job = Job.objects.select_for_update().get(pk=job.pk)
        actor = actor_of(user)
        tell(job, events.JobCommanded(action=action), actor=actor, now=now)
        advance(job, list(job.pods.all()), action, by_person=True, actor=actor, now=now)
    return job


def delete(job: Job, *, user: User, now: datetime) -> None:
    """Take a finished job off the lists; its events stay. Raises Refused while it is not finished."""
    _require_right(job, user)
    with unit_of_work():
        job = Job.objects.select_for_update().get(pk=job.pk)
        if not job.is_final:
            raise Refused(_("The job is not finished. Abort it first, then delete it."))
        job.deleted_at = now
        job.save(update_fields=["deleted_at"])
        tell(job, events.JobDeleted(name=job.name), actor=actor_of(user), now=now)


def _require_right(job: Job, user: User) -> None:
    if not selectors.may_act(user, job):
        raise Forbidden(_("Only the job's owner and the admins of its tenant may do this."))
