"""Scaling of a submitted job: the replicas of its tasks, their minimum, and their autoscaling.

Besides its priority, nothing else of a submitted job changes (`volcano-spec` §1.1). A minimum that was never set
keeps its value: a task without one needed all its replicas, and needs the same number after it grows.
"""

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from hekla.domain import frameworks
from hekla.domain.autoscaling import MAX_STABILIZATION_SECONDS, Autoscaling
from hekla.domain.errors import Invalid, Problem
from hekla.domain.field_types import StrictInteger
from hekla.domain.jobspec import JobSpec
from hekla.domain.model_errors import explain
from hekla.domain.policies import LifecycleAction, LifecycleEvent
from hekla.domain.task_spec import MAX_REPLICAS, MAX_TASKS, TaskSpec
from hekla.domain.validation import join, no_task

_SIZES = ("replicas", "min_available", "autoscaling")


class AutoscalingChange(BaseModel):
    """New values of a task's autoscaling, as in `Autoscaling`; omitted fields keep their value."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    max_replicas: Annotated[StrictInteger, Field(ge=1, le=MAX_REPLICAS)] | None = None
    gpu_utilization: Annotated[StrictInteger, Field(ge=1, le=100)] | None = None
    stabilization_seconds: Annotated[StrictInteger, Field(ge=0, le=MAX_STABILIZATION_SECONDS)] | None = None


class TaskScale(BaseModel):
    """The new size of a task; omitted fields keep their value. `autoscaling`: null switches it off."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    replicas: Annotated[StrictInteger, Field(ge=0, le=MAX_REPLICAS)] | None = None
    min_available: Annotated[StrictInteger, Field(ge=0)] | None = None
    autoscaling: AutoscalingChange | None = None


class JobScale(BaseModel):
    """The new size of a job: of some tasks by name, and `min_available` of the whole."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    tasks: Annotated[dict[str, TaskScale], Field(max_length=MAX_TASKS)] = {}
    min_available: Annotated[StrictInteger, Field(ge=1)] | None = None

    @classmethod
    def parse(cls, document: Mapping[str, Any]) -> "JobScale":
        """The size that this JSON-like document describes. Raises Invalid."""
        try:
            return cls.model_validate(document)
        except ValidationError as error:
            raise Invalid(explain(error, cls)) from error


def size_of(spec: JobSpec) -> JobScale:
    """The present size of a job. Tasks without a minimum have that of all their replicas."""
    tasks = {
        task.name: TaskScale(
            replicas=task.replicas,
            min_available=task.minimum,
            autoscaling=AutoscalingChange(**task.autoscaling.model_dump()) if task.autoscaling else None,
        )
        for task in spec.tasks
    }
    return JobScale(tasks=tasks, min_available=spec.min_available)


def resize(spec: JobSpec, size: JobScale) -> JobSpec:
    """The job scaled to that size. Raises Invalid with paths in `size`."""
    names = [task.name for task in spec.tasks]
    unknown = [Problem(join("tasks", name[:63]), no_task(name, names)) for name in size.tasks if name not in names]
    if unknown:
        raise Invalid(unknown)
    document = spec.document()
    tasks = [
        _with(task_document, task, size) for task_document, task in zip(document["tasks"], spec.tasks, strict=True)
    ]
    least = {} if size.min_available is None else {"min_available": size.min_available}
    try:
        return JobSpec.parse({**document, "tasks": tasks, **least})
    except Invalid as error:
        raise Invalid([Problem(_by_name(one.path, names), one.message) for one in error.problems]) from error


def least_replicas(spec: JobSpec, task: TaskSpec) -> int:
    """To how few replicas autoscaling may shrink the task: its minimum and those of the job need so many."""
    others = spec.replicas - task.replicas
    return max(1, task.minimum, (spec.min_available or 0) - others, (spec.min_success or 0) - others)


def size_changes(old: JobSpec, new: JobSpec) -> dict[str, tuple[int, int]]:
    """The changed numbers as (before, after), by `task.replicas`, `task.min_available`, `min_available`."""
    pairs = {"min_available": (old.gang_minimum, new.gang_minimum)}
    for before, after in zip(old.tasks, new.tasks, strict=True):
        pairs[f"{after.name}.replicas"] = (before.replicas, after.replicas)
        pairs[f"{after.name}.min_available"] = (before.minimum, after.minimum)
    return {name: (before, after) for name, (before, after) in pairs.items() if before != after}


def autoscaling_changes(old: JobSpec, new: JobSpec) -> dict[str, tuple[int | None, int | None]]:
    """The changed fields of autoscaling as (before, after), by `task.autoscaling.field`; None: it is off."""
    pairs = {
        f"{after.name}.autoscaling.{field}": (getattr(before.autoscaling, field, None), getattr(rule, field, None))
        for before, after in zip(old.tasks, new.tasks, strict=True)
        for rule in (after.autoscaling,)
        for field in Autoscaling.model_fields
    }
    return {name: (before, after) for name, (before, after) in pairs.items() if before != after}


def immutable_fields(spec: JobSpec) -> dict[str, Any]:
    """The job document without the fields that may change."""
    document = spec.document()
    tasks = [{name: value for name, value in task.items() if name not in _SIZES} for task in document["tasks"]]
    return {**document, "tasks": tasks, "min_available": None, "priority": None, "priority_class": None}


def remarks(spec: JobSpec, *, acts_on_updates: bool = True) -> tuple[str, ...]:
    """What running pods do not notice of the new size; empty if a policy restarts the job.

    `acts_on_updates`: policies on JobUpdated are in effect, which Volcano ignores.
    """
    if acts_on_updates and any(
        LifecycleEvent.JOB_UPDATED in rule.events and rule.action is LifecycleAction.RESTART_JOB
        for rule in spec.policies
    ):
        return ()
    return tuple(frameworks.scaling_remarks(spec))


def _with(document: Mapping[str, Any], task: TaskSpec, size: JobScale) -> Mapping[str, Any]:
    """The task's document in its new size; the minimum is written out, so that it does not grow with the replicas."""
    change = size.tasks.get(task.name, TaskScale())
    replicas = task.replicas if change.replicas is None else change.replicas
    least = task.minimum if change.min_available is None else change.min_available
    new = dict(document)
    if (replicas, least) != (task.replicas, task.minimum):
        new |= {"replicas": replicas, "min_available": least}
    if change.autoscaling is not None:
        new["autoscaling"] = {**new.get("autoscaling", {}), **change.autoscaling.model_dump(exclude_none=True)}
    elif "autoscaling" in change.model_fields_set:
        new.pop("autoscaling", None)
    return new


def _by_name(path: str, names: list[str]) -> str:
    """`tasks.0.replicas` as `tasks.worker.replicas`."""
    head, _, rest = path.partition(".")
    number, _, field = rest.partition(".")
    return join(head, names[int(number)], field) if head == "tasks" and number.isdecimal() else path
