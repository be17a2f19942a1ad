"""Changes to schedules, and the periodic work of the beat."""

import logging
from collections import defaultdict
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.db import IntegrityError
from django.utils.translation import gettext as _

from hekla.apps.accounts.models import User
from hekla.apps.accounts.services import actor_of
from hekla.apps.event_log import changes
from hekla.apps.event_log.services import PLATFORM, Actor, record, unit_of_work
from hekla.apps.jobs import services as jobs
from hekla.apps.jobs.models import Job
from hekla.apps.schedules import selectors
from hekla.apps.schedules.models import Schedule, ScheduleRun
from hekla.apps.tenancy.models import Tenant
from hekla.domain import events, schedules
from hekla.domain.errors import Forbidden, HeklaError, Refused
from hekla.domain.phases import JobPhase
from hekla.domain.schedule_runs import SkipReason
from hekla.domain.schedules import Concurrency, MissedRuns, ScheduleDecision, ScheduleSpec

log = logging.getLogger(__name__)
MOST_RUNS = 500
"""The maximum number of stored runs of a schedule; the event log has all."""


class ScheduleNameConflict(Refused):
    """The tenant has a schedule of that name already."""

    code = "name_taken"


class StillRunning(Refused):
    """A run has not finished, and the schedule forbids concurrent runs."""

    code = "still_running"


def create(*, spec: ScheduleSpec, tenant: Tenant, user: User, now: datetime) -> Schedule:
    """A new schedule. Raises ScheduleNameConflict, and what submitting its job raises, except for the job's name."""
    jobs.check(spec=spec.job, tenant=tenant, user=user)
    try:
        with unit_of_work():
            schedule = Schedule(name=spec.name, tenant=tenant, owner=user, created_at=now)
            _write(schedule, spec, now)
            schedule.save(force_insert=True)
            event = events.ScheduleCreated(name=spec.name, cron=spec.cron, time_zone=spec.time_zone)
            _tell(schedule, event, actor_of(user), now)
    except IntegrityError as error:
        sentence = _("%(tenant)s has a schedule “%(name)s” already. Choose another name.")
        raise ScheduleNameConflict(sentence % {"tenant": tenant, "name": spec.name}, "name") from error
    return schedule


def change(schedule: Schedule, new: ScheduleSpec | Mapping[str, Any], *, user: User, now: datetime) -> Schedule:
    """Replace the spec, or only these fields of it; not the name. From now on its jobs are this person's.

    Raises Forbidden, and what `create` raises.
    """
    _require(selectors.may_start(user, schedule))
    with unit_of_work():
        schedule = changes.locked(schedule)
        old = selectors.spec_of(schedule)
        spec = new if isinstance(new, ScheduleSpec) else ScheduleSpec.parse({**old.document(), **new})
        if spec.name != schedule.name:
            raise Refused(_("A schedule cannot be renamed. Create another schedule."), "name")
        jobs.check(spec=spec.job, tenant=schedule.tenant, user=user)
        event = events.ScheduleChanged(name=schedule.name, changes=_changes(old, spec))
        schedule.owner = user
        _write(schedule, spec, now)
        schedule.save(update_fields=[*_WRITTEN, "owner"])
        _tell(schedule, event, actor_of(user), now)
    return schedule


def set_suspended(schedule: Schedule, *, suspended: bool, user: User, now: datetime) -> Schedule:
    """Suspend or resume a schedule. Runs that were due while it was suspended are not made up for."""
    _require(selectors.may_act(user, schedule))
    with unit_of_work():
        schedule = changes.locked(schedule)
        if schedule.is_suspended != suspended:
            _write(schedule, selectors.spec_of(schedule).model_copy(update={"suspended": suspended}), now)
            schedule.save(update_fields=_WRITTEN)
            kind = events.ScheduleSuspended if suspended else events.ScheduleResumed
            _tell(schedule, kind(name=schedule.name), actor_of(user), now)
    return schedule


def delete(schedule: Schedule, *, user: User, now: datetime) -> None:
    """Delete a schedule; jobs that it started stay as they are."""
    _require(selectors.may_act(user, schedule))
    with unit_of_work():
        schedule = changes.locked(schedule)
        _tell(schedule, events.ScheduleDeleted(name=schedule.name), actor_of(user), now)
        schedule.delete()


def run_now(schedule: Schedule, *, user: User, now: datetime) -> ScheduleRun:
    """Start a run at once, as this person's job; a second call within the same minute returns the same run.

    Raises Forbidden, StillRunning, and what submitting raises.
    """
    _require(selectors.may_start(user, schedule))
    minute = now.replace(second=0, microsecond=0)
    with unit_of_work():
        schedule = changes.locked(schedule)
        known = selectors.runs(schedule).filter(due_at=minute, by_hand=True).first()
        if known is not None:
            return known
        spec, running = selectors.spec_of(schedule), selectors.running(schedule)
        if running and spec.concurrency is Concurrency.FORBID:
            raise StillRunning(
                _("%s has not finished, and this schedule does not allow two runs at the same time.") % running[0].job
            )
        job = jobs.submit(spec=spec.run(minute, by_hand=True), tenant=schedule.tenant, user=user, now=now)
        if spec.concurrency is Concurrency.REPLACE:
            _end(running, now)
        return _started(schedule, minute, job, by_hand=True, actor=actor_of(user), now=now)


def start_due(*, now: datetime) -> None:
    """Decide all due runs. Repeated or concurrent calls have the effect of one."""
    for pk in selectors.due(now):
        try:
            _look(pk, now)
        except HeklaError as error:  # the stored specification is invalid by now; it must not stop the others
            log.error("schedule %s cannot be looked at: %s", pk, error)


def _look(pk: int, now: datetime) -> None:
    with unit_of_work():
        found = Schedule.objects.select_for_update(of=("self",), skip_locked=True).select_related("tenant", "owner")
        schedule = found.filter(pk=pk, is_suspended=False, next_at__lte=now).first()
        if schedule is None:
            return
        spec = selectors.spec_of(schedule)
        running = {run.pk: run for run in selectors.running(schedule)}
        plan = schedules.decide_run(spec, schedule.looked_at, now, list(running))
        _apply_decision(schedule, spec, plan, running, now)
        _write(schedule, spec, now)
        schedule.save(update_fields=_WRITTEN)
        _forget_old_runs(schedule)


def _apply_decision(
    schedule: Schedule, spec: ScheduleSpec, plan: ScheduleDecision, running: Mapping[int, ScheduleRun], now: datetime
) -> None:
    if plan.missed is not None:
        _missed(schedule, plan.missed, now)
    if plan.due_at is None:
        return
    if plan.skip is not None:
        _skipped(schedule, plan.due_at, plan.skip, _names(list(running.values())), now)
        return
    try:
        job = jobs.submit(spec=spec.run(plan.due_at), tenant=schedule.tenant, user=schedule.owner, now=now)
    except HeklaError as refusal:
        _skipped(schedule, plan.due_at, SkipReason.REFUSED, refusal.message, now)
        return
    _end([running[pk] for pk in plan.replaces], now)
    _started(schedule, plan.due_at, job, by_hand=False, actor=PLATFORM, now=now)


def tidy(*, now: datetime) -> int:
    """Delete finished jobs beyond the history limits of their schedules. Returns how many."""
    by_schedule: dict[Schedule, list[ScheduleRun]] = defaultdict(list)
    for run in selectors.finished():
        by_schedule[run.schedule].append(run)
    too_many = [pk for schedule, runs in by_schedule.items() for pk in _too_many(schedule, runs)]
    return sum(jobs.delete_finished(pk, now=now) for pk in too_many)


def _too_many(schedule: Schedule, runs: list[ScheduleRun]) -> list[int]:
    """The row ids of the jobs beyond the history limits. `runs`: newest first."""
    over = [run.job for run in runs if run.job is not None]
    successful = [job.pk for job in over if job.phase == JobPhase.COMPLETED]
    failed = [job.pk for job in over if job.phase != JobPhase.COMPLETED]
    return schedules.excess_runs(successful, failed, selectors.spec_of(schedule))


_WRITTEN = ("spec", "is_suspended", "looked_at", "next_at")


def _write(schedule: Schedule, spec: ScheduleSpec, now: datetime) -> None:
    """Set the fields from the specification, with all runs up to now decided (not saved yet)."""
    schedule.spec = spec.document()
    schedule.is_suspended = spec.suspended
    schedule.looked_at = now
    schedule.next_at = next(iter(spec.next_times(now, 1)), None)


def _changes(old: ScheduleSpec, new: ScheduleSpec) -> dict[str, events.FieldChange]:
    """The changed fields; of the job only that it changed, since the log holds no documents."""
    before, after = (spec.model_dump(mode="json", include={*ScheduleSpec.changeable}) for spec in (old, new))
    changed = {
        name: events.FieldChange(old=before[name], new=after[name]) for name in before if before[name] != after[name]
    }
    return changed if old.job == new.job else {**changed, "job": events.FieldChange()}


def _started(
    schedule: Schedule, due_at: datetime, job: Job, *, by_hand: bool, actor: Actor, now: datetime
) -> ScheduleRun:
    _tell(schedule, events.ScheduleRunStarted(due_at=due_at, job=job.name, by_hand=by_hand), actor, now)
    return ScheduleRun.objects.create(
        schedule=schedule, due_at=due_at, outcome=ScheduleRun.Outcome.STARTED, job=job, by_hand=by_hand
    )


def _skipped(schedule: Schedule, due_at: datetime, why: SkipReason, message: str, now: datetime) -> None:
    _tell(schedule, events.ScheduleSkipped(due_at=due_at, reason=why, message=message), PLATFORM, now)
    ScheduleRun.objects.create(
        schedule=schedule, due_at=due_at, outcome=ScheduleRun.Outcome.SKIPPED, reason=why, message=message
    )


def _missed(schedule: Schedule, missed: MissedRuns, now: datetime) -> None:
    event = events.ScheduleMissed(first=missed.first, last=missed.last, count=missed.count)
    _tell(schedule, event, PLATFORM, now)
    ScheduleRun.objects.create(
        schedule=schedule,
        due_at=missed.first,
        until=missed.last,
        count=missed.count,
        outcome=ScheduleRun.Outcome.MISSED,
    )


def _end(running: list[ScheduleRun], now: datetime) -> None:
    """Terminate the jobs of these runs, because a newer run replaces them."""
    for run in running:
        if run.job is not None:
            jobs.end(run.job.pk, now=now)


def _names(running: list[ScheduleRun]) -> str:
    return ", ".join(str(run.job) for run in running[:5])


def _forget_old_runs(schedule: Schedule) -> None:
    """Delete the finished runs beyond the newest `MOST_RUNS`."""
    old = list(selectors.runs(schedule).values_list("pk", flat=True)[MOST_RUNS:])
    if old:
        still = [run.pk for run in selectors.running(schedule)]
        ScheduleRun.objects.filter(pk__in=old).exclude(pk__in=still).delete()


def _require(may: bool) -> None:
    if not may:
        raise Forbidden(_("Only the owner of the schedule and tenant admins can do this."))


def _tell(schedule: Schedule, event: events.Event, actor: Actor, now: datetime) -> None:
    record(event, subject=f"schedule:{schedule.uid}", tenant=schedule.tenant_id, actor=actor, at=now)
