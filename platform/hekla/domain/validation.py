"""From pydantic's findings to sentences for people: one problem per finding, with its dotted path.

Whoever sends a wrong job should learn at once everything that is wrong, where, what was got, and what would be right.
"""

import difflib
import json
import re
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from hekla.domain.errors import Problem


class Inconsistent(ValueError):
    """Values that are fine alone and wrong together; the problems' paths count from the field that raises this."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        super().__init__("; ".join(problem.message for problem in problems))
        self.problems = tuple(problems)


def findings(error: ValidationError) -> list[ErrorDetails]:
    """What pydantic found, without its echoes: it also calls a list too short whose entries are there but wrong."""
    return [
        details
        for details in error.errors()
        if details["type"] != "too_short" or len(details["input"]) < details["ctx"]["min_length"]
    ]


def explain(error: ValidationError, model: type[BaseModel]) -> list[Problem]:
    """Every finding as a problem, in the order of the document."""
    return [problem for details in findings(error) for problem in _problems(details, model)]


def shown(value: object) -> str:
    """A value as one may print it: short, and text in quotation marks."""
    if isinstance(value, str):
        return f"“{value[:40]}…”" if len(value) > 40 else f"“{value}”"  # noqa: PLR2004
    if isinstance(value, Mapping):
        return "a mapping"
    if isinstance(value, list | tuple):
        return "a list"
    if isinstance(value, bool):
        return str(value).lower()
    return "nothing" if value is None else f"{value!s:.40}"


def nearest(word: str, choices: Iterable[str], *, likeness: float = 0.6) -> str:
    """“; did you mean x?” where a choice is close, else nothing."""
    close = difflib.get_close_matches(word[:80], list(choices), n=1, cutoff=likeness)
    return f"; did you mean “{close[0]}”?" if close else ""


def one_of(given: object, choices: Sequence[str]) -> str:
    """That what was given is none of the choices, with the one that is like it."""
    hint = nearest(given, choices) if isinstance(given, str) else ""
    return f"{shown(given)} is not one of {', '.join(choices)}{hint or '.'}"


def is_text(text: str) -> bool:
    """Whether programs, files and databases can all take it: no NUL, and no half of a surrogate pair."""
    return "\0" not in text and not any("\ud800" <= letter <= "\udfff" for letter in text)


def join(*parts: object) -> str:
    """A dotted path from its parts, leaving empty ones out."""
    return ".".join(str(part) for part in parts if part != "")


def _problems(details: ErrorDetails, model: type[BaseModel]) -> list[Problem]:
    path = join(*(part for part in details["loc"] if part != "[key]"))
    cause = details.get("ctx", {}).get("error")
    if isinstance(cause, Inconsistent):
        return [Problem(join(path, problem.path), problem.message) for problem in cause.problems]
    if isinstance(cause, ValueError):
        return [Problem(path, str(cause))]
    if details["type"] == "extra_forbidden":
        return [Problem(path, _unknown_field(details["loc"], model))]
    sentence = _SENTENCES.get(details["type"])
    return [Problem(path, sentence(details) if sentence else f"{details['msg']}.")]


def _unknown_field(location: Sequence[int | str], model: type[BaseModel]) -> str:
    fields = _model_at(location[:-1], model).model_fields
    name = str(location[-1])
    hint = nearest(name, fields)
    return f"There is no field {shown(name)} here" + (hint or f". The fields are {', '.join(fields)}.")


def _model_at(location: Sequence[int | str], model: type[BaseModel]) -> type[BaseModel]:
    """The model that stands at this place of the document."""
    for part in location:
        field = model.model_fields.get(str(part))
        model = (field and _model_in(field.annotation)) or model
    return model


def _model_in(annotation: Any) -> type[BaseModel] | None:  # noqa: ANN401
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((found for part in get_args(annotation) if (found := _model_in(part))), None)


def _wants(what: str) -> Callable[[ErrorDetails], str]:
    return lambda details: f"This must be {what}, not {shown(details['input'])}."


def _bound(words: str, key: str) -> Callable[[ErrorDetails], str]:
    return lambda details: f"This must be {words} {details['ctx'][key]}, not {shown(details['input'])}."


def _text(details: ErrorDetails) -> str:
    hint = "; put it in quotes" if isinstance(details["input"], int | float) else ""
    return f"This must be text, not {shown(details['input'])}{hint}."


def _list(details: ErrorDetails) -> str:
    given = details["input"]
    if details["loc"][-1] != "command" or not isinstance(given, str):
        return f"This must be a list, not {shown(given)}."
    try:
        words = shlex.split(given)
    except ValueError:
        words = given.split()
    return f"This must be a list of words, for example {json.dumps(words, ensure_ascii=False)[:120]}, not one text."


def _length(words: str, key: str, unit: str) -> Callable[[ErrorDetails], str]:
    def sentence(details: ErrorDetails) -> str:
        size = details["ctx"].get("actual_length") or len(details["input"])
        return f"This may have {words} {details['ctx'][key]:,} {unit}; it has {size:,}."

    return sentence


_SENTENCES: dict[str, Callable[[ErrorDetails], str]] = {
    "missing": lambda _: "This must be given.",
    "string_type": _text,
    "int_type": _wants("a whole number"),
    "int_parsing": _wants("a whole number"),
    "int_from_float": _wants("a whole number"),
    "float_type": _wants("a number"),
    "float_parsing": _wants("a number"),
    "finite_number": _wants("a finite number"),
    "bool_type": _wants("true or false"),
    "bool_parsing": _wants("true or false"),
    "dict_type": _wants("a mapping of names to values"),
    "model_type": _wants("a mapping of fields to values"),
    "model_attributes_type": _wants("a mapping of fields to values"),
    "datetime_parsing": _wants("an instant such as 2026-01-31T12:00:00Z"),
    "tuple_type": _list,
    "list_type": _list,
    "enum": lambda details: one_of(details["input"], re.findall(r"'([^']*)'", details["ctx"]["expected"])),
    "greater_than_equal": _bound("at least", "ge"),
    "greater_than": _bound("more than", "gt"),
    "less_than_equal": _bound("at most", "le"),
    "less_than": _bound("less than", "lt"),
    "too_short": lambda _: "At least one must be given.",
    "too_long": _length("at most", "max_length", "entries"),
    "string_too_short": lambda _: "This must not be empty.",
    "string_too_long": _length("at most", "max_length", "letters"),
}
