"""What an edit changed, field by field, for the event that tells of it."""

from collections.abc import Mapping
from typing import Any

from django.db.models import Model

from hekla.domain.events import FieldChange


def apply(row: Model, values: Mapping[str, Any]) -> dict[str, FieldChange]:
    """Set the fields on the row (not saved yet) and return what differs from before."""
    changes = {
        name: FieldChange(old=getattr(row, name), new=value)
        for name, value in values.items()
        if getattr(row, name) != value
    }
    for name, value in values.items():
        setattr(row, name, value)
    return changes
