"""Changes the priority of a job. The scheduler uses the new one from its next cycle on.

The priority sets the job's place in its queue, and which jobs it can preempt. Running pods continue.
"""

from datetime import datetime

from django.utils.translation import gettext as _

from hekla.apps.accounts import selectors as accounts
from hekla.apps.accounts.models import User
from hekla.apps.accounts.roles import Permission
from hekla.apps.accounts.services import actor_of
from hekla.apps.event_log import changes
from hekla.apps.event_log.services import unit_of_work
from hekla.apps.jobs.facts import valid_spec
from hekla.apps.jobs.models import Job
from hekla.apps.jobs.services.commands import require_right
from hekla.apps.jobs.services.scaling import require_unchanged
from hekla.apps.jobs.services.telling import tell
from hekla.apps.priorities import selectors as priorities
from hekla.domain import events
from hekla.domain.errors import Invalid, Refused
from hekla.domain.jobspec import JobSpec
from hekla.domain.phases import JobPhase


def set_priority(job: Job, priority: int, *, user: User, now: datetime, expected_revision: int | None = None) -> Job:
    """Set the job's priority; no effect if it has that one already.

    `expected_revision`: the one that the person saw. Raises Forbidden, Invalid, Refused, RevisionConflict.
    """
    require_right(job, user)
    with unit_of_work():
        job = changes.locked(job)
        if job.is_external:
            raise Refused(_("The pods of this job are external. Their specs set the priority."))
        if not has_priority(job):
            raise Refused(_("The job has finished. Clone it to run it with another priority."))
        if reason := fixed_since(job):
            raise Refused(reason)
        require_unchanged(job, expected_revision)
        changed = {"priority": priority, "priority_class": ""}
        old, new = job.priority, JobSpec.parse({**valid_spec(job).document(), **changed})
        if new.priority == old:
            return job
        _require_offered(job, priority, user)
        job.spec, job.priority, job.revision = new.document(), new.priority, job.revision + 1
        job.spec_in_hand = new
        job.save(update_fields=["spec", "priority", "revision"])
        change = {"priority": events.FieldChange(old=old, new=new.priority)}
        tell(job, events.JobChanged(changes=change, revision=job.revision), actor=actor_of(user), now=now)
    return job


def _require_offered(job: Job, priority: int, user: User) -> None:
    """Raises Invalid if a raised priority exceeds the tenant's classes; operators may set any."""
    may_all = accounts.may(user, Permission.ACT_ON_ANY_JOB) or priority < job.priority
    if not may_all and (problems := [*priorities.offer_to(job.tenant).problems_of(priority)]):
        raise Invalid(problems)


def fixed_since(job: Job) -> str:
    """Why the priority cannot be changed although it still matters; empty if it can."""
    if not (has_priority(job) and job.cluster.leads_jobs):
        return ""
    return _(
        "Volcano schedules this job and uses its PriorityClass instead of numbers. Clone the job to run it "
        "with another class."
    )


def has_priority(job: Job) -> bool:
    """Whether the priority still matters: the job is unfinished, or can be resumed."""
    return job.deleted_at is None and not job.is_external and (not job.is_final or job.phase == JobPhase.ABORTED)
