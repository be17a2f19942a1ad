"""Warnings and ends of jobs that hold GPUs they do not use, and the wish of a person to keep one."""

from datetime import datetime, timedelta

from django.utils.translation import gettext as _

from hekla.apps.accounts.models import User
from hekla.apps.accounts.services import actor_of
from hekla.apps.event_log.services import PLATFORM, Actor, record, unit_of_work
from hekla.apps.idleness import job_selectors
from hekla.apps.idleness.models import JobIdleness
from hekla.apps.idleness.services import evidence_of, require_reason
from hekla.apps.jobs import services as jobs
from hekla.apps.jobs.models import Job
from hekla.domain import events
from hekla.domain.errors import Refused
from hekla.domain.idleness import IdleStep
from hekla.domain.policies import LifecycleAction


class _EndedOtherwise(Exception):
    """The job has ended, or is ending, for another reason. It takes back what was recorded."""


def keep(job: Job, *, hours: int, reason: str, user: User, now: datetime) -> datetime:
    """Keep a job for so many hours, once. Returns until when. Raises Forbidden, Refused, Invalid."""
    jobs.require_right(job, user)
    reason = require_reason(hours, reason)
    if job.is_final:
        raise Refused(_("The job has ended."))
    until = now + timedelta(hours=hours)
    with unit_of_work():
        state = _locked(job)
        if state.keep_until is not None:
            raise Refused(_("This job has been kept once already. Use its GPUs, and it goes on."))
        state.keep_until, state.keep_reason = until, reason
        state.save(update_fields=["keep_until", "keep_reason"])
        _record(job, events.JobKeepRequested(until=until.isoformat(), reason=reason), actor_of(user), now)
    return until


def warn(job: Job, *, now: datetime) -> datetime | None:
    """Warn the owner of a job whose GPUs are idle. Returns when it is aborted; None if nothing is to be done now."""
    with unit_of_work():
        state = _locked(job)
        verdict = job_selectors.activity_of(job, now=now).verdict
        if verdict is None or verdict.step is not IdleStep.WARN:
            return None
        state.warned_at, state.ends_at = now, verdict.next_at
        state.save(update_fields=["warned_at", "ends_at"])
        times = {"idle_since": verdict.idle_since.isoformat(), "ends_at": verdict.next_at.isoformat()}
        event = events.JobIdleWarned(**times, evidence=evidence_of(verdict))
        _record(job, event, PLATFORM, now)
        return verdict.next_at


def abort_idle(job: Job, *, now: datetime) -> bool:
    """Abort a job whose grace time is over, with the evidence. Returns whether that ended it.

    If another end of the job came first, nothing is recorded: the rule has not aborted it.
    """
    try:
        return _abort(job, now)
    except _EndedOtherwise:
        return False


def _abort(job: Job, now: datetime) -> bool:
    with unit_of_work():
        state = _locked(job)
        verdict = job_selectors.activity_of(job, now=now).verdict
        if verdict is None or verdict.step is not IdleStep.END:
            return False
        state.warned_at = state.ends_at = None  # a cluster that ends its jobs itself may take a while
        state.save(update_fields=["warned_at", "ends_at"])
        event = events.JobIdleAborted(idle_since=verdict.idle_since.isoformat(), evidence=evidence_of(verdict))
        _record(job, event, PLATFORM, now)
        if not jobs.end(job.pk, LifecycleAction.ABORT_JOB, now=now):
            raise _EndedOtherwise
        return True


def _locked(job: Job) -> JobIdleness:
    """The state of a job, locked: of several processes, one decides."""
    JobIdleness.objects.get_or_create(job=job)
    return JobIdleness.objects.select_for_update(of=("self",)).get(job=job)


def _record(job: Job, event: events.Event, actor: Actor, now: datetime) -> None:
    record(event, subject=f"job:{job.uid}", tenant=job.tenant_id, topics=[f"owner:{job.owner_id}"], actor=actor, at=now)
