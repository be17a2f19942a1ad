"""What a person asks of a job: abort, resume, restart, end."""

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
    require_right(job, user)
    with unit_of_work():
        job = Job.objects.select_for_update().get(pk=job.pk)
        if job.deleted_at is not None:
            raise Refused(_("The job is deleted. Clone it to run it again."))
        actor = actor_of(user)
        tell(job, events.JobCommanded(action=action), actor=actor, now=now)
        advance(job, list(job.pods.all()), action, by_person=True, actor=actor, now=now)
    return job


def require_right(job: Job, user: User) -> None:
    """Raises Forbidden for who may only look."""
    if not selectors.may_act(user, job):
        raise Forbidden(_("Only the job's owner and the admins of its tenant may do this."))
