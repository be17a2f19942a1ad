"""Flows: jobs with dependencies between them (Volcano's JobFlow).

A `FlowSpec` is always well formed: its dependencies exist and have no cycle. Whether its templates exist and its
patches fit them is checked elsewhere.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    JsonValue,
    ValidationError,
    field_validator,
    model_validator,
)
from pydantic_core.core_schema import ValidationInfo

from hekla.domain.errors import Invalid, Problem
from hekla.domain.field_types import Label, OptionalLabel, StrictInteger, Text
from hekla.domain.jobspec import MAX_JOB_NAME, JobSpec
from hekla.domain.model_errors import explain, findings
from hekla.domain.translation import translate
from hekla.domain.validation import InconsistentFields, find_cycle, is_text, join, quote, suggest

MAX_STEPS = 100
MAX_PROBES = 16
MAX_PATCH_BYTES = 64 * 1024
MAX_PATCH_DEPTH = 32
MAX_FLOW_BYTES = 1024 * 1024
MAX_PORT = 65_535

_HEADER = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,100}")
Name = Annotated[Label, Field(max_length=MAX_JOB_NAME)]


class Retain(StrEnum):
    """Whether the jobs of a flow are deleted once all of them have completed."""

    RETAIN = "retain"
    DELETE = "delete"


class TaskState(StrEnum):
    """The state of a task that a probe waits for: its minimum of pods runs, or has succeeded."""

    RUNNING = "running"
    SUCCEEDED = "succeeded"


def _one_line(text: str) -> str:
    if any(letter < " " or letter > "~" for letter in text):
        raise ValueError(translate("Only one line of ASCII characters is allowed. Percent-encode other characters."))
    return text


PlainLine = Annotated[Text, Field(max_length=1024), AfterValidator(_one_line)]


class Probe(BaseModel):
    """A condition on a dependency: the state of a task, or a port of its first pod.

    With a path, the probe is an HTTP request that passes with status 200 to 399; without one, a TCP connection. Without
    a task, a state applies to all tasks and a port to the first.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    task: OptionalLabel = ""
    state: TaskState | None = None
    port: Annotated[StrictInteger, Field(ge=1, le=MAX_PORT)] | None = None
    path: PlainLine = ""
    headers: Annotated[dict[str, PlainLine], Field(max_length=1)] = {}

    @model_validator(mode="after")
    def _has_one_condition(self) -> "Probe":
        problems = []
        if (self.state is None) == (self.port is None):
            problems.append(Problem("", translate("A probe needs either a state (running, succeeded) or a port.")))
        if self.path and not (self.port and self.path.startswith("/")):
            problems.append(Problem("path", translate("A path begins with a slash and needs a port.")))
        if self.headers and not self.path:
            problems.append(Problem("headers", translate("Headers need a path.")))
        wrong = [name for name in self.headers if not _HEADER.fullmatch(name)]
        problems += [Problem(join("headers", name), translate("Invalid header name.")) for name in wrong]
        _raise_any(problems)
        return self


class StepSpec(BaseModel):
    """One job of a flow: from a template of the tenant (by default the one with the step's name), or inline.

    It starts when all steps of `depends_on` have completed, or when all probes pass for each of them. `patch` is merged
    into the job's manifest (`formats.merge_patch`).
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: Name
    template: OptionalLabel = ""
    job: JobSpec | None = None
    depends_on: Annotated[tuple[Label, ...], Field(max_length=MAX_STEPS)] = ()
    probes: Annotated[tuple[Probe, ...], Field(max_length=MAX_PROBES)] = ()
    patch: dict[str, JsonValue] = {}

    @model_validator(mode="before")
    @classmethod
    def _job_takes_its_name(cls, document: Any) -> Any:  # noqa: ANN401  (whatever was sent)
        """A job inside a step takes the step's name if it has none."""
        if not isinstance(document, Mapping) or not isinstance(job := document.get("job"), Mapping):
            return document
        return {**document, "job": {"name": document.get("name"), **job}}

    @field_validator("job")
    @classmethod
    def _one_source(cls, value: JobSpec | None, info: ValidationInfo) -> JobSpec | None:
        if value is not None and info.data.get("template"):
            raise ValueError(translate("The step has both a template and a job. Remove one of them."))
        return value

    @field_validator("probes")
    @classmethod
    def _probes_need_dependencies(cls, value: tuple[Probe, ...], info: ValidationInfo) -> tuple[Probe, ...]:
        if value and info.data.get("depends_on") == ():
            raise ValueError(translate("Probes apply to the dependencies of a step. This step has none."))
        return value

    @field_validator("patch")
    @classmethod
    def _is_bounded(cls, value: dict[str, JsonValue]) -> dict[str, JsonValue]:
        if any(isinstance(part, str) and not is_text(part) for part in _parts(value, MAX_PATCH_DEPTH)):
            raise ValueError(translate("NUL characters and broken characters are not allowed."))
        try:
            size = len(json.dumps(value, allow_nan=False))
        except ValueError as error:
            raise ValueError(translate("Numbers in a patch must be finite.")) from error
        if size > MAX_PATCH_BYTES:
            raise ValueError(translate("The patch is larger than {kib} KiB.", kib=MAX_PATCH_BYTES // 1024))
        return value

    @property
    def template_name(self) -> str:
        """The template of the step's job; empty if the job is inline."""
        return "" if self.job else self.template or self.name


class FlowSpec(BaseModel):
    """The spec of a flow."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: Name
    retain: Retain = Retain.RETAIN
    steps: Annotated[tuple[StepSpec, ...], Field(min_length=1, max_length=MAX_STEPS)]

    @classmethod
    def parse(cls, document: Mapping[str, Any]) -> "FlowSpec":
        """The flow that this JSON-like document describes. Raises Invalid with every problem in it."""
        try:
            spec = cls.model_validate(document)
        except ValidationError as error:
            raise Invalid([*explain(error, cls), *_behind(document, error)]) from error
        if len(json.dumps(spec.document())) > MAX_FLOW_BYTES:
            message = translate(
                "The flow is larger than {kib} KiB. Save large jobs as templates.", kib=MAX_FLOW_BYTES // 1024
            )
            raise Invalid([Problem("", message)])
        return spec

    def document(self) -> dict[str, Any]:
        """As JSON-like data without default values; `parse` reads it back."""
        return self.model_dump(mode="json", exclude_defaults=True)

    def job_name(self, step: str) -> str:
        """The name of the job of that step."""
        return f"{self.name}-{step}"

    @property
    def waits(self) -> dict[str, tuple[str, ...]]:
        """The dependencies of each step, without duplicates."""
        return {step.name: tuple(dict.fromkeys(step.depends_on)) for step in self.steps}

    @field_validator("steps")
    @classmethod
    def _steps_agree(cls, value: tuple[StepSpec, ...], info: ValidationInfo) -> tuple[StepSpec, ...]:
        _raise_any(list(_disagreements(str(info.data.get("name", "")), [(s.name, s.depends_on) for s in value])))
        return value


def _behind(document: Mapping[str, Any], error: ValidationError) -> list[Problem]:
    """Problems between steps, which pydantic skips while a step is invalid.

    They are only reported if names and dependencies of the steps are valid.
    """
    steps = document.get("steps") if isinstance(document, Mapping) else None
    wrong = [details["loc"] for details in findings(error)]
    if not isinstance(steps, list) or not any(loc[:1] == ("steps",) and len(loc) > 1 for loc in wrong):
        return []
    if any(loc[2:3] in {(), ("name",), ("depends_on",)} for loc in wrong if loc[:1] == ("steps",)):
        return []
    known = [(step.get("name"), step.get("depends_on", ())) for step in steps if isinstance(step, Mapping)]
    name = "" if ("name",) in wrong else str(document.get("name"))
    return [Problem(join("steps", p.path), p.message) for p in _disagreements(name, known)]


def _disagreements(flow: str, steps: Sequence[tuple[Any, Sequence[Any]]]) -> Iterable[Problem]:
    """Problems between steps, each a name and the names of its dependencies."""
    names = [name for name, _ in steps]
    yield from _bad_names(flow, names)
    unknown = list(_unknown(names, steps))
    yield from unknown
    circle = find_cycle(dict(steps)) if not unknown else ()
    if circle:
        place = join(names.index(circle[0]), "depends_on")
        yield Problem(place, translate("Dependency cycle between steps: {circle}.", circle=" → ".join(circle)))


def _bad_names(flow: str, names: Sequence[str]) -> Iterable[Problem]:
    for place, name in enumerate(names):
        if name in names[:place]:
            yield Problem(join(place, "name"), translate("Another step has the name {name}.", name=quote(name)))
        excess = len(f"{flow}-{name}") - MAX_JOB_NAME
        if flow and excess > 0:
            message = translate(
                "The name of its job would exceed {most} characters. Shorten the name of the flow or the step "
                "by {excess}.",
                most=MAX_JOB_NAME,
                excess=excess,
            )
            yield Problem(join(place, "name"), message)


def _unknown(names: Sequence[str], steps: Sequence[tuple[Any, Sequence[Any]]]) -> Iterable[Problem]:
    for place, (_, others) in enumerate(steps):
        for number, other in enumerate(others):
            if other not in names:
                hint = suggest(other, names) or translate(". Available: {names}.", names=", ".join(names[:20]))
                message = translate("Unknown step {name}{hint}", name=quote(other), hint=hint)
                yield Problem(join(place, "depends_on", number), message)


def _parts(value: JsonValue, levels: int) -> list[JsonValue]:
    """Every key and value in it, from the outside in. Raises ValueError if it has more levels."""
    found: list[JsonValue] = []
    here = [value]
    while here:
        if levels < 0:
            raise ValueError(translate("The patch is nested deeper than {levels} levels.", levels=MAX_PATCH_DEPTH))
        found += here
        here = [inner for one in here for inner in _inside(one)]
        levels -= 1
    return found


def _inside(value: JsonValue) -> list[JsonValue]:
    if isinstance(value, dict):
        return [*value, *value.values()]
    return value if isinstance(value, list) else []


def _raise_any(problems: list[Problem]) -> None:
    if problems:
        raise InconsistentFields(problems)
