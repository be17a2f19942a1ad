"""Queries about schedules. Schedules outside the person's tenants do not exist."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import QuerySet, Value
from django.utils.translation import gettext as _

from hekla.apps import due_work
from hekla.apps.accounts import selectors as accounts
from hekla.apps.accounts.models import User
from hekla.apps.accounts.roles import Permission
from hekla.apps.compiled import Parameter
from hekla.apps.event_log import selectors as event_log
from hekla.apps.event_log.models import LoggedEvent
from hekla.apps.jobs.models import Job
from hekla.apps.schedules.models import Schedule, ScheduleRun
from hekla.apps.tenancy import selectors as tenancy
from hekla.domain.errors import NotFound
from hekla.domain.phases import FINAL_JOB_PHASES, JobPhase
from hekla.domain.schedules import ScheduleSpec

_FINAL = [phase.value for phase in FINAL_JOB_PHASES]


def visible_to(user: User) -> QuerySet[Schedule]:
    """The schedules that this person can see, by name."""
    found = Schedule.objects.select_related("tenant", "owner")
    if not accounts.may(user, Permission.SEE_EVERYTHING):
        found = found.filter(tenant__in=tenancy.where(user, Permission.SEE_TENANT))
    return found.order_by("name", "id")


def searchable() -> QuerySet[Schedule]:
    """All schedules, for a search that adds which tenants its reader sees."""
    return Schedule.objects.all()


def get(uid: UUID, user: User) -> Schedule:
    """One schedule. Raises NotFound."""
    schedule = visible_to(user).filter(uid=uid).first()
    if schedule is None:
        raise NotFound(_("Unknown schedule."))
    return schedule


def spec_of(schedule: Schedule) -> ScheduleSpec:
    """The specification of the schedule, with its current suspension."""
    return ScheduleSpec.parse({**schedule.spec, "suspended": schedule.is_suspended})


def may_act(user: User, schedule: Schedule) -> bool:
    """Whether the person may suspend, resume or delete it."""
    own = schedule.owner_id == user.pk and tenancy.may(user, schedule.tenant_id, Permission.ACT_ON_OWN_JOBS)
    wide = tenancy.may(user, schedule.tenant_id, Permission.ACT_ON_TENANT_JOBS)
    return own or wide or accounts.may(user, Permission.ACT_ON_ANY_JOB)


def may_start(user: User, schedule: Schedule) -> bool:
    """Whether the person may change it or start a run; its jobs are then submitted in their name."""
    return may_act(user, schedule) and tenancy.may(user, schedule.tenant_id, Permission.SUBMIT_JOBS)


def runs(schedule: Schedule) -> QuerySet[ScheduleRun]:
    """The runs of the schedule, newest first."""
    return ScheduleRun.objects.filter(schedule=schedule).select_related("job").order_by("-due_at", "-id")


def last_runs(schedules: Sequence[Schedule]) -> dict[int, ScheduleRun]:
    """The newest run of each schedule (by row id); of its job only the phase."""
    newest = ScheduleRun.objects.filter(schedule__in=schedules).order_by("schedule_id", "-due_at", "-id")
    columns = (*(field.name for field in ScheduleRun._meta.concrete_fields), "job__phase")
    return {run.schedule_id: run for run in newest.distinct("schedule_id").select_related("job").only(*columns)}


def running(schedule: Schedule) -> list[ScheduleRun]:
    """Its runs with unfinished jobs."""
    return list(runs(schedule).filter(outcome=ScheduleRun.Outcome.STARTED).exclude(job__phase__in=_FINAL))


def history(schedule: Schedule) -> QuerySet[LoggedEvent]:
    """All events of the schedule itself, oldest first."""
    return event_log.about(f"schedule:{schedule.uid}")


def due(now: datetime) -> list[int]:
    """The row ids of due schedules."""
    found = Schedule.objects.filter(is_suspended=False, next_at__lte=now)
    return list(found.order_by("next_at", "id").values_list("pk", flat=True))


def next_due() -> datetime | None:
    """When the next schedule is due, possibly in the past; None if none is."""
    found = Schedule.objects.filter(is_suspended=False, next_at__isnull=False).order_by("next_at")
    return found.values_list("next_at", flat=True).first()


def start_work() -> list[QuerySet[Any, Any]]:
    """Schedules that are due now or soon (see `due_work`)."""
    return [Schedule.objects.filter(is_suspended=False, next_at__lte=due_work.horizon())]


def tidy_work() -> list[QuerySet[Any, Any]]:
    """Runs whose jobs may be beyond the limits of their history (see `due_work`)."""
    return [_finished()]


def finished() -> list[ScheduleRun]:
    """Runs whose jobs finished for good and are not deleted, newest first per schedule."""
    return list(_finished().select_related("schedule", "job").order_by("schedule_id", "-due_at", "-id"))


def _finished() -> QuerySet[ScheduleRun]:
    over = [phase for phase in _FINAL if phase != JobPhase.ABORTED]
    return ScheduleRun.objects.filter(job__phase__in=over, job__deleted_at=None)


def origin_of(job: Job | Parameter) -> QuerySet[Schedule, tuple[str, UUID, str]]:
    """`schedule`, uid and name of the schedule that started the job; people who may see the job may see it."""
    found = Schedule.objects.filter(runs__job=job).annotate(origin=Value("schedule"))
    return found.order_by().values_list("origin", "uid", "name")
