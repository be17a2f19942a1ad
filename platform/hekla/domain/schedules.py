"""Recurring jobs: the spec of a schedule, and the decision about the run that is due.

As Volcano's CronJob, with two differences: a skipped run is never made up for, and a daily run happens once on days
with a clock change (`hekla.domain.cron`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from itertools import islice
from typing import Annotated, Any, ClassVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from hekla.domain import cron
from hekla.domain.cron import Cron
from hekla.domain.errors import Invalid
from hekla.domain.field_types import Label, StrictInteger
from hekla.domain.jobspec import JobSpec
from hekla.domain.model_errors import explain
from hekla.domain.schedule_runs import SkipReason
from hekla.domain.validation import InconsistentFields

MAX_NAME = 40
MAX_COUNTED = 100
MAX_HISTORY = 1000
_LONGEST_DEADLINE = 366 * 86_400
_LATEST_MINUTE = 10**8 - 1


class Concurrency(StrEnum):
    """When a run is due while an earlier one is active: run both, skip the new one, or replace the earlier one."""

    ALLOW = "Allow"
    FORBID = "Forbid"
    REPLACE = "Replace"


def _is_cron(text: str) -> str:
    cron.parse(text)
    return text.strip()


def _is_zone(name: str) -> str:
    cron.zone(name)
    return name


class ScheduleSpec(BaseModel):
    """The spec of a schedule. Each run has a name of its own (`run_name`), so the job's name is not used."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: Annotated[Label, Field(max_length=MAX_NAME)]
    cron: Annotated[str, AfterValidator(_is_cron)]
    time_zone: Annotated[str, Field(max_length=64), AfterValidator(_is_zone)] = "UTC"
    concurrency: Concurrency = Concurrency.ALLOW
    starting_deadline_seconds: Annotated[StrictInteger, Field(ge=1, le=_LONGEST_DEADLINE)] | None = None
    suspended: Annotated[bool, Field(strict=True)] = False
    successful_jobs_history_limit: Annotated[StrictInteger, Field(ge=0, le=MAX_HISTORY)] = 3
    failed_jobs_history_limit: Annotated[StrictInteger, Field(ge=0, le=MAX_HISTORY)] = 1
    job: JobSpec

    changeable: ClassVar[tuple[str, ...]] = (
        "cron", "time_zone", "concurrency", "starting_deadline_seconds", "successful_jobs_history_limit",
        "failed_jobs_history_limit",
    )  # fmt: skip
    """Fields of the schedule that can be edited; its name cannot, and `suspended` has actions of its own."""

    @classmethod
    def parse(cls, document: Mapping[str, Any]) -> "ScheduleSpec":
        """The schedule that this JSON-like document describes. Raises Invalid with every problem in it."""
        try:
            return cls.model_validate(document)
        except ValidationError as error:
            raise Invalid(explain(error, cls)) from error

    @model_validator(mode="before")
    @classmethod
    def _job_is_named(cls, document: Any) -> Any:  # noqa: ANN401  (whatever was sent)
        """Validate the job under the longest name of a run."""
        if not isinstance(document, Mapping) or not isinstance(document.get("job"), Mapping):
            return document
        name = str(document.get("name", ""))[:MAX_NAME]
        return {**document, "job": {**document["job"], "name": _named(name, _LATEST_MINUTE, by_hand=True)}}

    @field_validator("job", mode="wrap")
    @classmethod
    def _job_is_one(cls, value: Any, handler: Any) -> JobSpec:  # noqa: ANN401  (as pydantic calls it)
        if not isinstance(value, Mapping):
            job: JobSpec = handler(value)
            return job
        try:
            return JobSpec.parse(value)
        except Invalid as error:
            about_the_job = [problem for problem in error.problems if problem.path != "name"]
            if not about_the_job:  # the schedule's own name is wrong, which is reported there
                return JobSpec.parse({**value, "name": "x"})
            raise InconsistentFields(about_the_job) from error

    def document(self) -> dict[str, Any]:
        """As JSON-like data without default values; `parse` reads it back."""
        job = {name: value for name, value in self.job.document().items() if name != "name"}
        return {**self.model_dump(mode="json", exclude_defaults=True, exclude={"job"}), "job": job}

    def run(self, due_at: datetime, *, by_hand: bool = False) -> JobSpec:
        """The job of the run that is due at this instant."""
        return self.job.model_copy(update={"name": run_name(self.name, due_at, by_hand=by_hand)})

    @property
    def times(self) -> Cron:
        """The parsed cron expression."""
        return cron.parse(self.cron)

    def next_times(self, after: datetime, count: int) -> list[datetime]:
        """The next instants at which a run is due, in UTC."""
        return list(islice(self.times.after(after, cron.zone(self.time_zone)), count))


def run_name(name: str, due_at: datetime, *, by_hand: bool = False) -> str:
    """The name of a run's job: one name for one instant, so a second start finds the first."""
    return _named(name, int(due_at.timestamp()) // 60, by_hand=by_hand)


def _named(name: str, minute: int, *, by_hand: bool) -> str:
    return f"{name}-{minute}-now" if by_hand else f"{name}-{minute}"


@dataclass(frozen=True, slots=True)
class MissedRuns:
    """Runs that were due while the controller was down. At most `MAX_COUNTED` + 1 are counted."""

    first: datetime
    last: datetime
    count: int


@dataclass(frozen=True, slots=True)
class ScheduleDecision:
    """What to do with the run of `due_at`: start it, unless `skip` gives the reason why not.

    `replaces`: runs to stop first. `missed`: earlier runs that will not be made up for.
    """

    due_at: datetime | None = None
    skip: SkipReason | None = None
    replaces: tuple[int, ...] = ()
    missed: MissedRuns | None = None


def decide_run(spec: ScheduleSpec, looked_at: datetime, now: datetime, running: Sequence[int]) -> ScheduleDecision:
    """The decision about the runs due after `looked_at` and up to `now`; `running`: active runs of the schedule.

    Of several due runs only the last one starts, and only within the starting deadline.
    """
    if spec.suspended:
        return ScheduleDecision()
    due = spec.times.latest(now, cron.zone(spec.time_zone))
    if due is None or due <= looked_at:
        return ScheduleDecision()
    missed = _missed(spec, looked_at, due)
    deadline = spec.starting_deadline_seconds
    if deadline is not None and now - due > timedelta(seconds=deadline):
        return ScheduleDecision(due, SkipReason.TOO_LATE, missed=missed)
    if spec.concurrency is Concurrency.FORBID and running:
        return ScheduleDecision(due, SkipReason.STILL_RUNNING, missed=missed)
    replaces = tuple(running) if spec.concurrency is Concurrency.REPLACE else ()
    return ScheduleDecision(due, replaces=replaces, missed=missed)


def _missed(spec: ScheduleSpec, looked_at: datetime, due: datetime) -> MissedRuns | None:
    times = list(islice(spec.times.after(looked_at, cron.zone(spec.time_zone)), MAX_COUNTED + 1))
    before = [moment for moment in times if moment < due]
    if not before:
        return None
    last = spec.times.latest(due - timedelta(microseconds=1), cron.zone(spec.time_zone)) or before[-1]
    return MissedRuns(before[0], last, len(before))


def excess_runs(successful: Sequence[int], failed: Sequence[int], spec: ScheduleSpec) -> list[int]:
    """The finished runs beyond the history limits; both lists are newest first."""
    return [*successful[spec.successful_jobs_history_limit :], *failed[spec.failed_jobs_history_limit :]]
