"""Copies of a row, changed where each row of its table must be different."""

import uuid
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

from django.db.models import BooleanField, ForeignKey, Model, UniqueConstraint


def add_copies(row: Model, numbers: range, **parents: Any) -> list[Any]:
    """Create a copy of the row for each number. `parents`: rows for all copies, or lists with one for each."""
    values = {field.attname: getattr(row, field.attname) for field in row._meta.local_fields if not field.primary_key}
    shared = {name: found for name, found in parents.items() if not isinstance(found, list)}
    own = {name: found for name, found in parents.items() if isinstance(found, list)}
    fields = list(_varied(row, own))
    replaced = {row._meta.get_field(name).attname for name in parents}
    other = {name: value for name, value in values.items() if name not in replaced}
    copies = [
        type(row)(
            **other | {field.attname: _other(values[field.attname], number) for field in fields},
            **shared,
            **{name: found[place] for name, found in own.items()},
        )
        for place, number in enumerate(numbers)
    ]
    return type(row)._default_manager.bulk_create(copies)


def _varied(row: Model, own: dict[str, Any]) -> Iterator[Any]:
    """The fields with a value of its own for each copy: unique ones, and one of those that are unique together."""
    for field in row._meta.local_fields:
        if field.unique and not field.primary_key and field.name not in own:
            yield field
    for constraint in row._meta.constraints:
        if isinstance(constraint, UniqueConstraint) and not own.keys() & set(constraint.fields):
            fields = [row._meta.get_field(name) for name in constraint.fields]
            yield from [field for field in fields if not isinstance(field, ForeignKey | BooleanField)][-1:]


def _other(value: Any, number: int) -> Any:
    match value:
        case uuid.UUID():
            return uuid.uuid4()
        case str():
            return f"{value[:30]}-{number}"
        case bytes() | memoryview():
            return bytes(value) + number.to_bytes(4, "big")
        case int() if not isinstance(value, bool):
            return value + number + 1
        case _:
            return value - timedelta(minutes=number + 1)
