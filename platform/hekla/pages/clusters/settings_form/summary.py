"""The settings of a cluster as labels and texts, for its page."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from django.utils.translation import gettext as _

from hekla.backends import registry
from hekla.pages.clusters.settings_form.fields import FieldKind, SettingField, fields_of

_MOST_ROWS = 20
_MOST_CHARACTERS = 400


def settings_of(kind: str, config: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The label and the text of each setting that has a value, in the order of the form."""
    known = registry.kinds().get(kind)
    return list(_texts(fields_of(known.config), config)) if known else []


def _texts(settings: Sequence[SettingField], config: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for one in settings:
        if config.get(one.name) not in (None, "", [], {}):
            yield one.label, _text(one, config[one.name])[:_MOST_CHARACTERS]


def _text(one: SettingField, value: Any) -> str:  # noqa: ANN401  (any JSON)
    if one.shape is FieldKind.GROUP and isinstance(value, Mapping):
        return _inside(one, value)
    if one.shape is FieldKind.ROWS and isinstance(value, list):
        rows = [_inside(one, row) for row in value[:_MOST_ROWS] if isinstance(row, Mapping)]
        return _("; ").join([*rows, "…"] if len(value) > _MOST_ROWS else rows)
    if isinstance(value, bool):
        return _("yes") if value else _("no")
    if isinstance(value, Mapping):
        return _(", ").join(f"{name}={text}" for name, text in value.items())
    return _(", ").join(map(str, value)) if isinstance(value, list) else str(value)


def _inside(one: SettingField, value: Mapping[str, Any]) -> str:
    return _(", ").join(_(": ").join(pair) for pair in _texts(one.parts, value))
