"""Sweeps: one job many times, each time with other parameters.

`{{ lr }}` stands for the value of the parameter `lr` in the words of commands and the values of variables, and nowhere
else. Values are text from users: each replaces its placeholder inside one word, once. The result is not parsed again,
neither for placeholders nor by a shell. So a word stays one word whatever the value contains. If the user's own command
passes a word to a shell (`sh -c "train {{ lr }}"`), that shell interprets the value like the rest of the word. To
prevent this, write `sh -c 'train "$0"' "{{ lr }}"`, or use a variable.
"""

import csv
import math
import random
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice, product
from typing import Annotated, Any, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
    ValidationError,
    model_validator,
)

from hekla.domain.errors import Invalid, Problem
from hekla.domain.field_types import Label, StrictInteger, Text
from hekla.domain.jobspec import JobSpec
from hekla.domain.model_errors import explain
from hekla.domain.task_spec import TaskSpec
from hekla.domain.translation import translate
from hekla.domain.validation import InconsistentFields, join, quote, suggest

MAX_NAME = 40
MAX_JOBS = 1000
MAX_ATTEMPTS = 999
MAX_PARAMETERS = 20
MAX_PROBLEMS = 20
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_PLACEHOLDER = re.compile(r"\{\{\s*([A-Za-z_][A-Za-z0-9_]*)\s*\}\}")
_KIND = re.compile(r"^(parameters\.[^.]+)\.(?:values|range)(?=\.|$)")
_WORDS = ("command", "args")
_NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
_RANGE = re.compile(rf"(?P<low>{_NUMBER})\.\.(?P<high>{_NUMBER})(?P<words>(?:\s+(?:log|whole))*)", re.ASCII)


class SweepMethod(StrEnum):
    """The jobs of a sweep: all combinations; the first values together, then the second …; or random values."""

    GRID = "grid"
    LIST = "list"
    RANDOM = "random"


def _is_name(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise ValueError(
            translate("A parameter name has letters, digits and underscores, and cannot begin with a digit.")
        )
    return name


def _as_text(value: object) -> object:
    """YAML and JSON write numbers and booleans without quotes; programs get them as text."""
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, int | float) else value


Value = Annotated[Text, Field(max_length=4096), BeforeValidator(_as_text)]
Values = Annotated[tuple[Value, ...], Field(min_length=1, max_length=MAX_JOBS)]
Name = Annotated[str, Field(max_length=63), AfterValidator(_is_name)]


class Range(BaseModel):
    """A range for random values: uniform, or uniform on a log scale; optionally whole numbers."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    low: Annotated[float, Field(ge=-1e100, le=1e100)]
    high: Annotated[float, Field(ge=-1e100, le=1e100)]
    log: bool = False
    whole: bool = False

    @model_validator(mode="after")
    def _agrees(self) -> Self:
        if self.low > self.high:
            message = translate("Must be at least {low:g}, the start of the range.", low=self.low)
            raise InconsistentFields([Problem("high", message)])
        if self.log and self.low <= 0:
            raise InconsistentFields([Problem("low", translate("A logarithmic range must be above 0."))])
        if self.whole and math.ceil(self.low) > math.floor(self.high):
            raise InconsistentFields([Problem("whole", translate("The range has no integer."))])
        return self

    def draw(self, part: float) -> str:
        """The value at a fraction of the range, from 0 to less than 1."""
        if self.whole:
            low, high = math.ceil(self.low), math.floor(self.high)
            return str(min(max(math.floor(self._at(part, low, high + 1)), low), high))
        return f"{self._at(part, self.low, self.high):.6g}"

    def _at(self, part: float, low: float, high: float) -> float:
        if self.log:
            return math.exp(math.log(low) + part * (math.log(high) - math.log(low)))
        return low + part * (high - low)


def _kind_of(value: object) -> str:
    return "range" if isinstance(value, Mapping | Range) else "values"


Choice = Annotated[Annotated[Values, Tag("values")] | Annotated[Range, Tag("range")], Discriminator(_kind_of)]


@dataclass(frozen=True, slots=True)
class SweepTrial:
    """One job of a sweep: its number from 1, its parameters, and the job."""

    number: int
    parameters: dict[str, str]
    spec: JobSpec


class SweepSpec(BaseModel):
    """The spec of a sweep. Its jobs have the name of the sweep and a number, not the name of the job."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: Annotated[Label, Field(max_length=MAX_NAME)]
    how: SweepMethod = SweepMethod.GRID
    parameters: Annotated[dict[Name, Choice], Field(min_length=1, max_length=MAX_PARAMETERS)]
    count: Annotated[StrictInteger, Field(ge=1, le=MAX_JOBS)] | None = None
    seed: Annotated[StrictInteger, Field(ge=0, le=2**53)] = 0
    job: JobSpec

    @classmethod
    def parse(cls, document: Mapping[str, Any]) -> "SweepSpec":
        """The sweep that this JSON-like document describes. Raises Invalid with every problem in it."""
        try:
            return cls.model_validate(_with_job_named(document))
        except ValidationError as error:
            raise Invalid(_without_echoes(explain(error, cls))) from error

    @model_validator(mode="after")
    def _agrees(self) -> Self:
        problems = [*self._problems_of_values(), *self._problems_of_placeholders()]
        if problems:
            raise InconsistentFields(problems)
        return self

    def document(self) -> dict[str, Any]:
        """As JSON-like data without default values; `parse` reads it back."""
        job = {name: value for name, value in self.job.document().items() if name != "name"}
        return {**self.model_dump(mode="json", exclude_defaults=True, exclude={"job"}), "job": job}

    def size(self) -> int:
        """The number of jobs."""
        if self.how is SweepMethod.RANDOM:
            return self.count or 0
        lengths = [len(values) for values in self.parameters.values() if isinstance(values, tuple)]
        return math.prod(lengths) if self.how is SweepMethod.GRID else lengths[0]

    def points(self, most: int = MAX_JOBS) -> list[SweepTrial]:
        """The first `most` jobs. Raises Invalid if one is invalid, with paths like `jobs.3.tasks.0.command.0`."""
        found, problems = [], []
        for number, parameters in enumerate(islice(self._parameters(), most), start=1):
            try:
                found.append(SweepTrial(number, parameters, self._job(number, parameters)))
            except Invalid as error:
                problems += [Problem(join("jobs", number, each.path), each.message) for each in error.problems]
        if problems:
            raise Invalid(problems[:MAX_PROBLEMS])
        return found

    def _parameters(self) -> Iterator[dict[str, str]]:
        names = list(self.parameters)
        if self.how is SweepMethod.RANDOM:
            yield from self._drawn()
            return
        lists = [values for values in self.parameters.values() if isinstance(values, tuple)]
        rows = product(*lists) if self.how is SweepMethod.GRID else zip(*lists, strict=True)
        for row in rows:
            yield dict(zip(names, row, strict=True))

    def _drawn(self) -> Iterator[dict[str, str]]:
        """Random parameters, the same for the same seed in every Python version: only `random()` is used."""
        dice = random.Random(self.seed)  # noqa: S311  (not for secrets)
        for _ in range(self.count or 0):
            yield {
                name: values.draw(dice.random())
                if isinstance(values, Range)
                else values[int(dice.random() * len(values))]
                for name, values in self.parameters.items()
            }

    def _job(self, number: int, parameters: Mapping[str, str]) -> JobSpec:
        document = self.job.document()
        tasks = [_filled_task(task, parameters) for task in document["tasks"]]
        return JobSpec.parse({**document, "name": f"{self.name}-{number}", "tasks": tasks})

    def _problems_of_values(self) -> Iterator[Problem]:
        ranges = [name for name, values in self.parameters.items() if isinstance(values, Range)]
        if self.how is SweepMethod.RANDOM:
            if self.count is None:
                yield Problem("count", translate("Enter the number of samples."))
            return
        if self.count is not None:
            yield Problem("count", translate("Only random sweeps have a number of samples."))
        for name in ranges:
            yield Problem(join("parameters", name), translate("Ranges need a random sweep. List the values here."))
        lengths = {len(values) for values in self.parameters.values() if isinstance(values, tuple)}
        if self.how is SweepMethod.LIST and len(lengths) > 1:
            message = translate(
                "In pairs all parameters need the same number of values. These have {counts}.",
                counts=_join_numbers(lengths),
            )
            yield Problem("parameters", message)
        elif not ranges and self.size() > MAX_JOBS:
            message = translate(
                "These are {size:,} jobs. The limit is {most:,} per submission.", size=self.size(), most=MAX_JOBS
            )
            yield Problem("parameters", message)

    def _problems_of_placeholders(self) -> Iterator[Problem]:
        used = set()
        for path, text in _places(self.job.tasks):
            for name in _PLACEHOLDER.findall(text):
                used.add(name)
                if name not in self.parameters:
                    there = translate(". Available: {names}.", names=", ".join(self.parameters))
                    hint = suggest(name, self.parameters) or there
                    message = translate("Unknown parameter {name}{hint}", name=quote(name), hint=hint)
                    yield Problem(join("job", path), message)
        for name in self.parameters:
            if name not in used:
                message = translate(
                    "No command or variable uses {{{{ {name} }}}}, so all jobs would be the same.", name=name
                )
                yield Problem(join("parameters", name), message)


def parse_parameter(text: str) -> tuple[str, list[str] | dict[str, Any]]:
    """Parse a parameter as users type it: `lr=0.1,0.01`, `lr=0.001..0.1 log`. Raises ValueError."""
    name, equals, values = (part.strip() for part in text.partition("="))
    if not equals or not _NAME.fullmatch(name):
        raise ValueError(translate("{text} is not in the form name=value,value or name=low..high.", text=quote(text)))
    if match := _RANGE.fullmatch(values):
        words = match["words"].split()
        bounds = {"low": float(match["low"]), "high": float(match["high"])}
        return name, bounds | dict.fromkeys(words, True)
    try:
        rows = list(csv.reader([values], skipinitialspace=True, strict=True))
    except csv.Error as error:
        raise ValueError(translate("{text}: a quotation mark is not closed.", text=quote(text))) from error
    return name, [value.strip() for value in rows[0]] if rows and rows[0] else [""]


def fill(text: str, parameters: Mapping[str, str]) -> str:
    """The text with the placeholders replaced by their values; unknown placeholders stay."""
    return _PLACEHOLDER.sub(lambda match: parameters.get(match[1], match[0]), text)


def compact_placeholders(text: str) -> str:
    """The text without spaces inside its placeholders, so each is part of one word of a command line."""
    return _PLACEHOLDER.sub(r"{{\1}}", text)


def _filled_task(task: Mapping[str, Any], parameters: Mapping[str, str]) -> dict[str, Any]:
    env = {name: fill(value, parameters) for name, value in task.get("env", {}).items()}
    words = {name: [fill(word, parameters) for word in task[name]] for name in _WORDS if name in task}
    return {**task, **words, **({"env": env} if env else {})}


def _places(tasks: tuple[TaskSpec, ...]) -> Iterator[tuple[str, str]]:
    """Every text that may hold placeholders, with its path."""
    for place, task in enumerate(tasks):
        for field, words in zip(_WORDS, (task.command, task.args), strict=True):
            for number, word in enumerate(words):
                yield join("tasks", place, field, number), word
        for name, value in task.env.items():
            yield join("tasks", place, "env", name), value


def _with_job_named(document: Mapping[str, Any]) -> Mapping[str, Any]:
    """Name the job with the longest name that a job of the sweep can have, so that this name is validated."""
    if not isinstance(document, Mapping) or not isinstance(document.get("job"), Mapping):
        return document
    name = str(document.get("name", ""))[:MAX_NAME]
    return {**document, "job": {**document["job"], "name": f"{name}-{MAX_JOBS}-r{MAX_ATTEMPTS}"}}


def _without_echoes(problems: list[Problem]) -> list[Problem]:
    """Drop the problem of the job's name, which repeats one of the sweep's name, and the union's tags in paths."""
    found = [problem for problem in problems if problem.path != "job.name"] or problems
    return [Problem(_KIND.sub(r"\1", problem.path), problem.message) for problem in found]


def _join_numbers(numbers: set[int]) -> str:
    return translate(" and ").join(map(str, sorted(numbers)))
