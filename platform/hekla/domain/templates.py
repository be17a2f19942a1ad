"""Templates: jobs with some open fields, which users may set; all other fields are locked.

A field has its path in the JobSpec document, for example `tasks.worker.replicas` (see `assignments`). An open field may
be limited by a minimum and a maximum, or by a list of choices.
"""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from math import isfinite
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from hekla.domain.assignments import apply_assignments
from hekla.domain.errors import Invalid, Problem
from hekla.domain.jobspec import JobSpec
from hekla.domain.model_errors import explain
from hekla.domain.resources import parse_quantity
from hekla.domain.translation import translate
from hekla.domain.validation import quote

MAX_FIELDS = 100
_JOB = ("queue", "priority", "active_deadline_seconds")
_TASK = ("replicas", "command", "args", "environment", "image")
_RESOURCES = ("cpu", "memory", "nvidia.com/gpu")
Word = Annotated[str, Field(max_length=500)]
Bound = Annotated[str, Field(max_length=64)]


class OpenField(BaseModel):
    """A field that users may set. Limits are written like the field's value: `8`, `500m`, `16Gi`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    place: Annotated[str, Field(min_length=1, max_length=300)]
    least: Bound = ""
    most: Bound = ""
    choices: Annotated[tuple[Word, ...], Field(max_length=50)] = ()

    @model_validator(mode="after")
    def _bounds_are_amounts(self) -> "OpenField":
        amounts = [self._amount(bound) for bound in (self.least, self.most) if bound]
        if None in amounts:
            raise ValueError(translate("Minimum and maximum are amounts, for example 8, 0.1 or 16Gi."))
        if sorted(amounts, key=float) != amounts:  # type: ignore[arg-type]
            raise ValueError(translate("The minimum exceeds the maximum."))
        return self

    def problem(self, text: str) -> str:
        """Why this value is not allowed; empty if it is."""
        if self.choices and text not in self.choices:
            return translate("{text} is not one of: {choices}.", text=quote(text), choices=", ".join(self.choices))
        if not self.least and not self.most:
            return ""
        amount = self._amount(text)
        if amount is None:
            return translate("{text} is not an amount.", text=quote(text))
        if self.least and amount < (self._amount(self.least) or 0):
            return translate("Must be at least {least}.", least=self.least)
        if self.most and amount > (self._amount(self.most) or 0):
            return translate("Must be at most {most}.", most=self.most)
        return ""

    def _amount(self, text: str) -> float | None:
        _task, is_resource, name = self.place.partition(".resources.")
        try:
            amount = parse_quantity(name, text) if is_resource else float(text)
        except ValueError:
            return None
        return amount if isfinite(amount) else None


def openable_fields(spec: JobSpec) -> Iterator[tuple[str, str]]:
    """The fields of a job that a template may open, each with its value in the form in which users type it."""
    document = spec.model_dump(mode="json")
    yield from ((name, _typed(document[name])) for name in _JOB)
    for task in document["tasks"]:
        place = f"tasks.{task['name']}"
        yield from ((f"{place}.{name}", _typed(task[name])) for name in _TASK)
        yield from ((f"{place}.resources.{name}", _typed(task["resources"].get(name))) for name in _RESOURCES)
        yield from ((f"{place}.env.{name}", value) for name, value in task["env"].items())
    yield from ((f"files.{name}", text) for name, text in document["files"].items())


def parse_open_fields(spec: JobSpec, fields: Sequence[Mapping[str, Any]]) -> tuple[OpenField, ...]:
    """The open fields of a template of this job. Raises Invalid for unknown fields and invalid limits."""
    there, found, problems = dict(openable_fields(spec)), [], []
    for number, document in enumerate(fields[: MAX_FIELDS + 1]):
        try:
            found.append(OpenField.model_validate(document))
        except ValidationError as error:
            path = f"fields.{number}"
            problems += [Problem(f"{path}.{each.path}".rstrip("."), each.message) for each in explain(error, OpenField)]
    problems += [
        Problem(each.place, translate("The job has no field {place} that can be open.", place=quote(each.place)))
        for each in found
        if each.place not in there
    ]
    if len({each.place for each in found}) < len(found):
        problems.append(Problem("fields", translate("Duplicate open field.")))
    if len(fields) > MAX_FIELDS:
        problems.append(Problem("fields", translate("At most {most} fields can be open.", most=MAX_FIELDS)))
    if problems:
        raise Invalid(problems)
    return tuple(found)


def instantiate(spec: JobSpec, fields: Sequence[OpenField], values: Mapping[str, str], *, name: str) -> JobSpec:
    """The job of a template with these values in its open fields. Raises Invalid, each problem with its field."""
    known = {field.place: field for field in fields}
    problems = [
        Problem(
            place, known[place].problem(text) if place in known else translate("This field is locked by the template.")
        )
        for place, text in values.items()
    ]
    problems = [problem for problem in problems if problem.message]
    if problems:
        raise Invalid(problems)
    document = apply_assignments(spec.document(), [f"{place}={text}" for place, text in values.items()])
    try:
        return JobSpec.parse({**document, "name": name})
    except Invalid as error:
        raise Invalid([Problem(_by_name(problem.path, spec), problem.message) for problem in error.problems]) from error


def _by_name(path: str, spec: JobSpec) -> str:
    """The path with the name of a task in place of its index."""
    head, _, rest = path.partition(".")
    number, _, rest = rest.partition(".")
    if head != "tasks" or not number.isdigit():
        return path
    return f"tasks.{spec.tasks[int(number)].name}.{rest}".rstrip(".")


def _typed(value: object) -> str:
    if isinstance(value, list):
        return shlex.join(value)
    return "" if value is None else str(value)
