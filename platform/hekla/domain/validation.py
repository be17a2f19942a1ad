"""Pydantic's errors as messages for users: one `Problem` per error, with its dotted path.

Every problem of a document is reported at once: where it is, which value was sent, and what would be right.
"""

import difflib
import json
import re
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from typing import Any, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from hekla.domain.errors import Problem
from hekla.domain.translation import gettext_noop, translate

_UNSTORABLE = re.compile("[\0\ud800-\udfff]")


class InconsistentFields(ValueError):
    """Values that contradict one another. Paths of the problems are relative to the field that raises this."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        super().__init__("; ".join(problem.message for problem in problems))
        self.problems = tuple(problems)


def findings(error: ValidationError) -> list[ErrorDetails]:
    """Pydantic's errors, without the follow-up error that a list of wrong entries is too short."""
    return [
        details
        for details in error.errors()
        if details["type"] != "too_short" or len(details["input"]) < details["ctx"]["min_length"]
    ]


def explain(error: ValidationError, model: type[BaseModel]) -> list[Problem]:
    """Every finding as a problem, in the order of the document."""
    return [problem for details in findings(error) for problem in _problems(details, model)]


def quote(value: object) -> str:
    """A short form of a value for messages, with text in quotation marks."""
    if isinstance(value, str):
        return f"“{value[:40]}…”" if len(value) > 40 else f"“{value}”"  # noqa: PLR2004
    if isinstance(value, Mapping):
        return translate("a mapping")
    if isinstance(value, list | tuple):
        return translate("a list")
    if isinstance(value, bool):
        return str(value).lower()
    return translate("nothing") if value is None else f"{value!s:.40}"


def suggest(word: str, choices: Iterable[str], *, cutoff: float = 0.6) -> str:
    """“. Did you mean “x”?” with the closest choice; empty if no choice is close."""
    close = difflib.get_close_matches(word[:80], list(choices), n=1, cutoff=cutoff)
    return translate(". Did you mean “{word}”?", word=close[0]) if close else ""


def not_one_of(value: object, choices: Sequence[str]) -> str:
    """The message that a value is not among the choices, with the closest choice."""
    values = {"given": quote(value), "choices": ", ".join(choices)}
    if isinstance(value, str) and (hint := suggest(value, choices)):
        return translate("{given} is not one of {choices}{hint}", hint=hint, **values)
    return translate("{given} is not one of {choices}.", **values)


def no_task(name: str, names: Sequence[str]) -> str:
    """The message that the job has no task of this name."""
    if hint := suggest(name, names):
        return translate("Unknown task {name}{hint}", name=quote(name), hint=hint)
    return translate("Unknown task {name}. Available: {names}.", name=quote(name), names=", ".join(names))


def find_cycle(dependencies: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """A cycle of names that depend on one another, the first repeated at the end; empty if there is none."""
    try:
        TopologicalSorter(dependencies).prepare()
    except CycleError as error:
        return tuple(reversed(error.args[1]))
    return ()


def is_text(text: str) -> bool:
    """Whether programs, files and databases accept the text: no NUL, no half of a surrogate pair."""
    return _UNSTORABLE.search(text) is None


def join(*parts: object) -> str:
    """A dotted path from its parts, leaving empty ones out."""
    return ".".join(str(part) for part in parts if part != "")


def _problems(details: ErrorDetails, model: type[BaseModel]) -> list[Problem]:
    path = join(*(part for part in details["loc"] if part != "[key]"))
    cause = details.get("ctx", {}).get("error")
    if isinstance(cause, InconsistentFields):
        return [Problem(join(path, problem.path), problem.message) for problem in cause.problems]
    if isinstance(cause, ValueError):
        return [Problem(path, str(cause))]
    if details["type"] == "extra_forbidden":
        return [Problem(path, _unknown_field(details["loc"], model))]
    return [Problem(path, _message(details))]


def _message(details: ErrorDetails) -> str:
    kind, value = details["type"], details["input"]
    if kind in _TELLERS:
        return _TELLERS[kind](details)
    if kind in _SENTENCES:
        return translate(_SENTENCES[kind], given=quote(value), **details.get("ctx", {}))
    return f"{details['msg']}."


def _unknown_field(location: Sequence[int | str], model: type[BaseModel]) -> str:
    fields = _model_at(location[:-1], model).model_fields
    name = str(location[-1])
    if hint := suggest(name, fields):
        return translate("Unknown field {name}{hint}", name=quote(name), hint=hint)
    return translate("Unknown field {name}. The fields are {fields}.", name=quote(name), fields=", ".join(fields))


def _model_at(location: Sequence[int | str], model: type[BaseModel]) -> type[BaseModel]:
    """The model at this place of the document."""
    for part in location:
        field = model.model_fields.get(str(part))
        model = (field and model_in(field.annotation)) or model
    return model


def model_in(annotation: Any) -> type[BaseModel] | None:  # noqa: ANN401
    """The first model in a type, for example of the items of a tuple; None if there is none."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((found for part in get_args(annotation) if (found := model_in(part))), None)


def _text(details: ErrorDetails) -> str:
    value = quote(details["input"])
    if isinstance(details["input"], int | float):
        return translate("Must be a string, not {given}. Put it in quotes.", given=value)
    return translate("Must be a string, not {given}.", given=value)


def _list(details: ErrorDetails) -> str:
    value = details["input"]
    if details["loc"][-1] != "command" or not isinstance(value, str):
        return translate("Must be a list, not {given}.", given=quote(value))
    try:
        words = shlex.split(value)
    except ValueError:
        words = value.split()
    example = json.dumps(words, ensure_ascii=False)[:120]
    return translate("Must be a list of words, for example {example}, not one string.", example=example)


def _choice(details: ErrorDetails) -> str:
    return not_one_of(details["input"], re.findall(r"'([^']*)'", details["ctx"]["expected"]))


def _too_long(details: ErrorDetails) -> str:
    """The type of the value decides, since Pydantic also reports `too_long` for strings with their own validator."""
    value, most = details["input"], details["ctx"]["max_length"]
    if isinstance(value, str):
        return translate("{size:,} characters. The limit is {most:,}.", size=len(value), most=most)
    return translate(
        "{size:,} entries. The limit is {most:,}.", size=details["ctx"].get("actual_length") or len(value), most=most
    )


_WHOLE = gettext_noop("Must be an integer, not {given}.")
_NUMBER = gettext_noop("Must be a number, not {given}.")
_TRUTH = gettext_noop("Must be true or false, not {given}.")
_FIELDS = gettext_noop("Must be a mapping of fields to values, not {given}.")
_SENTENCES: dict[str, str] = {
    "missing": gettext_noop("Required."),
    "int_type": _WHOLE,
    "int_parsing": _WHOLE,
    "int_from_float": _WHOLE,
    "float_type": _NUMBER,
    "float_parsing": _NUMBER,
    "finite_number": gettext_noop("Must be a finite number, not {given}."),
    "bool_type": _TRUTH,
    "bool_parsing": _TRUTH,
    "dict_type": gettext_noop("Must be a mapping of names to values, not {given}."),
    "model_type": _FIELDS,
    "model_attributes_type": _FIELDS,
    "datetime_parsing": gettext_noop("Must be a time, for example 2026-01-31T12:00:00Z, not {given}."),
    "greater_than_equal": gettext_noop("Must be at least {ge}, not {given}."),
    "greater_than": gettext_noop("Must be more than {gt}, not {given}."),
    "less_than_equal": gettext_noop("Must be at most {le}, not {given}."),
    "less_than": gettext_noop("Must be less than {lt}, not {given}."),
    "too_short": gettext_noop("At least one is required."),
    "string_too_short": gettext_noop("Must not be empty."),
}
_TELLERS: dict[str, Callable[[ErrorDetails], str]] = {
    "string_type": _text,
    "tuple_type": _list,
    "list_type": _list,
    "enum": _choice,
    "too_long": _too_long,
    "string_too_long": _too_long,
}
