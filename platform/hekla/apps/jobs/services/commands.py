"""Commands of a person or of the platform to a job: abort, resume, restart, end."""

from datetime import datetime

from django.utils.translation import gettext as _

from hekla.apps.accounts.models import User
from hekla.apps.accounts.services import actor_of
from hekla.apps.event_log import changes
from hekla.apps.event_log.services import PLATFORM, unit_of_work
from hekla.apps.jobs import job_rows, selectors
from hekla.apps.jobs.facts import job_facts, spec_of
from hekla.apps.jobs.models import Job
from hekla.apps.jobs.services import quota
from hekla.apps.jobs.services.telling import tell
from hekla.apps.jobs.services.transitions import advance, write
from hekla.domain import events
from hekla.domain.errors import Forbidden, Refused
from hekla.domain.lifecycle import delegated, target_of
from hekla.domain.policies import LifecycleAction


def command(
    job: Job, action: LifecycleAction, *, task: str = "", index: int | None = None, user: User, now: datetime
) -> Job:
    """Apply a person's command. `task` and `index` name the part of the job that it concerns, if not all of it.

    Raises Refused if their role or the job's phase does not allow it, Invalid if the part is wrong, QuotaExceeded if
    resuming the job would exceed a quota.
    """
    require_right(job, user)
    with unit_of_work():
        job = changes.locked(job)
        if job.deleted_at is not None:
            raise Refused(_("The job was deleted. Clone it to run it again."))
        if job.is_external:
            raise Refused(_("The pods of this job are external. Their owner stops or recreates them."))
        target, actor = target_of(spec_of(job), action, task, index), actor_of(user)
        if job.is_final and action is LifecycleAction.RESUME_JOB:
            _require_quota(job, user, now)
        tell(job, events.JobCommanded(action=action, task=task, index=index), actor=actor, now=now)
        if job.cluster.leads_jobs:
            write(job, [], delegated.request(job_facts(job), action), actor=actor, now=now)
        else:
            advance(job, list(job.pods.all()), action, target=target, by_person=True, actor=actor, now=now)
    return job


def end(job_id: int, action: LifecycleAction = LifecycleAction.TERMINATE_JOB, *, now: datetime) -> bool:
    """Terminate or abort a job on behalf of the platform. Returns whether there was anything to end."""
    with unit_of_work():
        job = job_rows.locked(job_id)
        if job.is_final or job.is_external:
            return False
        tell(job, events.JobCommanded(action=action), actor=PLATFORM, now=now)
        if job.cluster.leads_jobs:
            return write(job, [], delegated.request(job_facts(job), action), actor=PLATFORM, now=now)
        return advance(job, list(job.pods.all()), action, actor=PLATFORM, now=now)


def _require_quota(job: Job, by: User, now: datetime) -> None:
    """A resumed job counts again for its owner's quota. Raises QuotaExceeded."""
    quota.require([spec_of(job)], [job.queue], tenant=job.tenant, user=job.owner, now=now, by=by)


def require_right(job: Job, user: User) -> None:
    """Raises Forbidden if the person may only view the job."""
    if not selectors.may_act(user, job):
        raise Forbidden(_("Only the owner of the job and tenant admins can do this."))
