"""The fields of a configuration model: for each its shape, its label and its bounds, read from the pydantic model."""

import types
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum, StrEnum
from functools import cache
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from django.utils.translation import get_language
from django.utils.translation import gettext as _
from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined, to_jsonable_python

from hekla.backends.config import BackendConfig

_SCALARS = (str, int, float)


class FieldKind(StrEnum):
    """How a value is entered. `pairs`: names with values, one `name=value` per line. `json`: whatever has no field."""

    FLAG = "flag"
    CHOICE = "choice"
    CHOICES = "choices"
    WHOLE = "whole"
    NUMBER = "number"
    TEXT = "text"
    LINES = "lines"
    PAIRS = "pairs"
    JSON = "json"
    GROUP = "group"
    ROWS = "rows"


@dataclass(frozen=True, slots=True)
class SettingField:
    """A field of a configuration. `default`: as JSON, None without one. `parts`: the fields of a group or of a row.

    `is_optional`: None is a value. `is_main`: visible without opening the other settings.
    """

    name: str
    label: str
    help: str
    shape: FieldKind
    default: Any
    is_required: bool
    is_optional: bool
    is_main: bool
    choices: tuple[str, ...] = ()
    bounds: Mapping[str, float] | None = None
    parts: tuple["SettingField", ...] = ()

    @property
    def empty(self) -> Any:  # noqa: ANN401  (any JSON)
        """The value without an entry."""
        return (
            []
            if self.shape in (FieldKind.LINES, FieldKind.CHOICES, FieldKind.ROWS)
            else {}
            if self.shape is FieldKind.PAIRS
            else None
        )


def fields_of(model: type[BaseModel]) -> tuple[SettingField, ...]:
    """The fields of a configuration model, in its order; only to be read, since requests share them."""
    return _fields_of(model, get_language())


@cache
def _fields_of(model: type[BaseModel], _language: str | None) -> tuple[SettingField, ...]:
    return tuple(_field(model, name, info) for name, info in model.model_fields.items())


def _field(model: type[BaseModel], name: str, info: FieldInfo) -> SettingField:
    shape, inner, is_optional = _shape(info.annotation)
    label, text = _words(model, name, info)
    main, default = getattr(model, "main", ()), _default(info)
    return SettingField(
        name=name,
        label=label,
        help=text,
        shape=shape,
        default=default,
        is_required=info.is_required(),
        is_optional=is_optional,
        is_main=not main or name in main,
        choices=_choices(inner) if shape in (FieldKind.CHOICE, FieldKind.CHOICES) else (),
        bounds=_bounds(info),
        parts=_parts(inner, default) if shape in (FieldKind.GROUP, FieldKind.ROWS) else (),
    )


def _parts(model: type[BaseModel], default: Any) -> tuple[SettingField, ...]:  # noqa: ANN401  (any JSON)
    """The fields inside a group or a row, with the defaults of the group if it has some."""
    own = default if isinstance(default, Mapping) else {}
    return tuple(replace(one, default=own.get(one.name, one.default)) for one in fields_of(model))


def _words(model: type[BaseModel], name: str, info: FieldInfo) -> tuple[str, str]:
    """The label and the help of a field, translated; its name in plain words if its model declares none."""
    label, text = getattr(model, "words", {}).get(name, (info.title or "", info.description or ""))
    plain = name.replace("_", " ")
    return _(label) if label else plain[:1].upper() + plain[1:], _(text) if text else ""


def _default(info: FieldInfo) -> Any:  # noqa: ANN401  (any JSON)
    value = info.get_default(call_default_factory=True, validated_data={})
    return None if value is PydanticUndefined else to_jsonable_python(value)


def _bounds(info: FieldInfo) -> dict[str, float]:
    found: dict[str, float] = {}
    for one in info.metadata:
        for bound, attribute in (("ge", "min"), ("gt", "min"), ("le", "max"), ("lt", "max")):
            if (value := getattr(one, bound, None)) is not None:
                found[attribute] = value
    return found


def _shape(annotation: Any) -> tuple[FieldKind, Any, bool]:  # noqa: ANN401  (a type)
    """The shape; the model, the choices or the type inside; and whether None is a value."""
    origin, inner = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _shape(inner[0])
    if origin in (Union, types.UnionType):
        return _of_union([one for one in inner if one is not type(None)], is_optional=type(None) in inner)
    if origin is Literal:
        return FieldKind.CHOICE, annotation, False
    if origin in (tuple, list):
        return _of_list(inner[0]), _model_or_type(inner[0]), False
    if origin is dict:
        return (FieldKind.PAIRS if _is_scalar(inner[1]) else FieldKind.JSON), annotation, False
    return _of_class(annotation), annotation, False


def _of_union(inner: list[Any], *, is_optional: bool) -> tuple[FieldKind, Any, bool]:
    if len(inner) == 1:
        shape, of, _is_optional = _shape(inner[0])
        return shape, of, is_optional
    return (FieldKind.TEXT if all(map(_is_scalar, inner)) else FieldKind.JSON), str, is_optional


def _of_list(item: Any) -> FieldKind:  # noqa: ANN401  (a type)
    return {
        FieldKind.GROUP: FieldKind.ROWS,
        FieldKind.CHOICE: FieldKind.CHOICES,
        FieldKind.TEXT: FieldKind.LINES,
        FieldKind.WHOLE: FieldKind.LINES,
    }.get(_shape(item)[0], FieldKind.JSON)


def _of_class(annotation: Any) -> FieldKind:  # noqa: ANN401  (a type)
    if not isinstance(annotation, type):
        return FieldKind.JSON
    for base, shape in (
        (bool, FieldKind.FLAG),
        (Enum, FieldKind.CHOICE),
        (int, FieldKind.WHOLE),
        (float, FieldKind.NUMBER),
        (str, FieldKind.TEXT),
        (BackendConfig, FieldKind.GROUP),
    ):
        if issubclass(annotation, base):
            return shape
    return FieldKind.JSON


def _is_scalar(annotation: Any) -> bool:  # noqa: ANN401  (a type)
    origin, inner = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _is_scalar(inner[0])
    if origin in (Union, types.UnionType):
        return all(map(_is_scalar, inner))
    return annotation in _SCALARS


def _model_or_type(annotation: Any) -> Any:  # noqa: ANN401  (a type)
    return _model_or_type(get_args(annotation)[0]) if get_origin(annotation) is Annotated else annotation


def _choices(inner: Any) -> tuple[str, ...]:  # noqa: ANN401  (a type)
    if get_origin(inner) is Literal:
        return tuple(str(one) for one in get_args(inner))
    return tuple(str(one.value) for one in inner)
