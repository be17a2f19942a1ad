"""Pydantic's errors as messages for users: one `Problem` per error, with its dotted path.

Every problem of a document is reported at once: where it is, which value was sent, and what would be right.
"""

import json
import re
import shlex
from collections.abc import Callable, Sequence
from typing import Any, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from hekla.domain.errors import Problem
from hekla.domain.translation import gettext_noop, translate
from hekla.domain.validation import InconsistentFields, join, not_one_of, quote, suggest


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
