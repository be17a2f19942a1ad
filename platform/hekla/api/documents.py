"""Validation of JSON documents by serializers, as strictly as the OpenAPI document describes them.

Serializers of the framework ignore unknown fields, and convert values: 5 to the text "5", {} to an empty list.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from django.utils.translation import gettext as _
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from rest_framework.exceptions import ValidationError

from hekla.api.queries import checked
from hekla.apps.forms import RESERVED


@extend_schema_field({"type": ["string", "number"], "maxLength": 64})
class QuantityField(serializers.CharField):
    """A Kubernetes quantity: a text such as 500m, or a number."""

    def __init__(self, **more: Any) -> None:  # noqa: ANN401
        super().__init__(max_length=64, **more)


def refuse_reserved(name: str) -> None:
    """Raises ValidationError if addresses use the name as a word of their own."""
    if name in RESERVED:
        raise ValidationError(_("“%s” is reserved in addresses. Choose another name.") % name)


AnyField = serializers.Field[Any, Any, Any, Any]
_LISTS = (
    serializers.ListSerializer,
    serializers.ListField,
    serializers.MultipleChoiceField,
    serializers.ManyRelatedField,
)
_JSON_TYPES: tuple[tuple[str, tuple[type, ...], tuple[type, ...]], ...] = (
    ("array", (list,), _LISTS),
    ("object", (Mapping,), (serializers.Serializer, serializers.DictField)),
    ("boolean", (bool,), (serializers.BooleanField,)),
    ("integer", (int,), (serializers.IntegerField,)),
    ("number", (int, float), (serializers.FloatField,)),
    ("string or number", (str, int, float), (QuantityField,)),
    (
        "string",
        (str,),
        (
            serializers.CharField,
            serializers.ChoiceField,
            serializers.UUIDField,
            serializers.DateTimeField,
            serializers.SlugRelatedField,
        ),
    ),
)
"""Names of JSON types, their Python types, and the fields that expect them. The first match counts."""


def validated(serializer: serializers.Serializer[Any]) -> dict[str, Any]:
    """The validated data. Raises ValidationError, also for unknown fields and values of another JSON type."""
    problems = dict(_mistakes(serializer, serializer.initial_data, ""))
    if problems:
        raise ValidationError({path: [message] for path, message in sorted(problems.items())})
    return checked(serializer)


def _mistakes(field: AnyField, value: object, path: str) -> Iterator[tuple[str, str]]:
    """The paths of unknown fields and of values of another type, with a message for each."""
    if value is None:  # whether a field can be null is its own check
        return
    if wanted := _other_type(field, value):
        yield path, _("The value must be of the JSON type %(type)s.") % {"type": wanted}
    elif isinstance(field, serializers.Serializer) and isinstance(value, Mapping):
        for name, inner in value.items():
            if name in field.fields:
                yield from _mistakes(field.fields[name], inner, _below(path, name))
            else:
                yield _below(path, name), _("Unknown field.")
    elif (child := _child(field)) is not None:
        items = value.items() if isinstance(value, Mapping) else enumerate(value if isinstance(value, list) else ())
        for place, inner in items:
            yield from _mistakes(child, inner, _below(path, str(place)))


def _below(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _child(field: AnyField) -> AnyField | None:
    """The field of each item of a list or mapping."""
    return getattr(field, "child", None) or getattr(field, "child_relation", None)


def _other_type(field: AnyField, value: object) -> str:
    """The JSON type that the field expects, if the value has another one; otherwise empty."""
    for name, types, fields in _JSON_TYPES:
        if isinstance(field, fields):
            is_bool = isinstance(value, bool)
            return "" if isinstance(value, types) and (not is_bool or name == "boolean") else name
    return ""
