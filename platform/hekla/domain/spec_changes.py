"""Changes to a job spec, for example fewer replicas or another queue, with a text form for URLs and links.

queue=batch                            another queue
worker.replicas=2                      fewer pods of a task
worker.min_available=2                 a lower minimum, with the same number of pods
worker.resources.nvidia.com/gpu=1      smaller pods
worker.node_selector=                  any node
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from hekla.domain.errors import Invalid, Problem
from hekla.domain.jobspec import JobSpec
from hekla.domain.scaling import JobScale, TaskScale
from hekla.domain.task_spec import TaskSpec
from hekla.domain.translation import translate

_TEXT = re.compile(
    r"(?:(?P<task>[-a-z0-9]{1,63})\.)?"
    r"(?P<field>queue|replicas|min_available|node_selector|resources\.(?P<resource>[-A-Za-z0-9._/]{1,128}))"
    r"=(?P<value>[-A-Za-z0-9.]{0,64})"
)
_MOST = 8


class SpecField(StrEnum):
    """The field of a job spec that a change sets."""

    QUEUE = "queue"
    REPLICAS = "replicas"
    LEAST = "min_available"
    SELECTOR = "node_selector"
    RESOURCE = "resources"


@dataclass(frozen=True, slots=True)
class SpecChange:
    """A new value for one field of the job or of one of its tasks."""

    lever: SpecField
    value: str = ""
    task: str = ""
    resource: str = ""

    @classmethod
    def parse(cls, text: str) -> "SpecChange":
        """Parse the text form. Raises Invalid."""
        found = _TEXT.fullmatch(text)
        if found is None or (found["field"] == SpecField.QUEUE) == bool(found["task"]):
            raise Invalid(
                [Problem("change", translate("Not a valid change. Examples: worker.replicas=2, queue=batch."))]
            )
        lever = SpecField(found["field"].partition(".")[0])
        return cls(lever, found["value"], found["task"] or "", found["resource"] or "")

    def __str__(self) -> str:
        place = ".".join(filter(None, (self.task, self.lever, self.resource)))
        return f"{place}={self.value}"

    @property
    def number(self) -> int:
        """The new number of pods. Raises Invalid."""
        if not self.value.isdecimal():
            raise Invalid([Problem("change", translate("The number of pods must be an integer."))])
        return int(self.value)

    @property
    def is_of_size(self) -> bool:
        """Whether a submitted job can be changed in place; otherwise a clone is submitted."""
        return self.lever in (SpecField.REPLICAS, SpecField.LEAST)

    def applied(self, spec: JobSpec) -> JobSpec:
        """The job with this change. Raises Invalid."""
        document = spec.document()
        if self.lever is SpecField.QUEUE:
            return JobSpec.parse({**document, "queue": self.value})
        task = self._task(spec)
        tasks = [
            self._changed(task_document) if task_document["name"] == task.name else task_document
            for task_document in document["tasks"]
        ]
        return JobSpec.parse(_within_bounds({**document, "tasks": tasks}))

    def _task(self, spec: JobSpec) -> TaskSpec:
        try:
            return spec.task(self.task)
        except KeyError:
            raise Invalid([Problem("change", translate("The job does not have this task."))]) from None

    def _changed(self, task: Mapping[str, Any]) -> dict[str, Any]:
        changed = dict(task)
        if self.lever is SpecField.SELECTOR:
            changed.pop("node_selector", None)
        elif self.lever is SpecField.RESOURCE:
            rest = {name: amount for name, amount in task.get("resources", {}).items() if name != self.resource}
            changed["resources"] = rest | ({self.resource: self.value} if self.value else {})
        else:
            changed[str(self.lever)] = self.number
        if self.lever is SpecField.REPLICAS and changed.get("min_available") is not None:
            changed["min_available"] = min(changed["min_available"], self.number)
        return changed


def apply_changes(spec: JobSpec, changes: Iterable[SpecChange]) -> JobSpec:
    """The job with all of these changes. Raises Invalid."""
    for change in changes:
        spec = change.applied(spec)
    return spec


def size_of(spec: JobSpec) -> JobScale:
    """The size of a spec, as a request to scale another job to it."""
    tasks = {task.name: TaskScale(replicas=task.replicas, min_available=task.minimum) for task in spec.tasks}
    return JobScale(tasks=tasks, min_available=spec.min_available)


def parse(text: str) -> tuple[SpecChange, ...]:
    """Parse changes separated by commas; only the first 8 count. Raises Invalid."""
    return tuple(SpecChange.parse(one) for one in text.split(",")[:_MOST]) if text else ()


def _within_bounds(document: dict[str, Any]) -> dict[str, Any]:
    """Cap `min_available` and `min_success` of the job to what its tasks allow."""
    tasks = [(task.get("replicas", 1), task.get("min_available")) for task in document["tasks"]]
    total = sum(replicas for replicas, _least in tasks)
    needed = sum(replicas if least is None else least for replicas, least in tasks)
    bounds = {"min_available": max(1, needed), "min_success": total}
    return document | {
        name: min(document[name], most) for name, most in bounds.items() if document.get(name) is not None
    }
