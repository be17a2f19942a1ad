"""The changes of an edit, field by field, for its event."""

from collections.abc import Mapping
from typing import Any

from django.db.models import Model

from hekla.domain.events import FieldChange


def apply(row: Model, values: Mapping[str, Any]) -> dict[str, FieldChange]:
    """Set the fields on the row, without saving it, and return the fields that changed."""
    changes = {
        name: FieldChange(old=getattr(row, name), new=value)
        for name, value in values.items()
        if getattr(row, name) != value
    }
    for name, value in values.items():
        setattr(row, name, value)
    return changes
