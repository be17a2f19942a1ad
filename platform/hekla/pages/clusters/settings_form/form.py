"""The form of a cluster's configuration: its values as fields, and the fields as a configuration again.

What a field shows and nobody changes keeps its value exactly, also if it could be written in another way. Values equal
to the default are left out, unless they were in the configuration before.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from django import forms
from django.http import QueryDict
from django.utils.translation import gettext as _

from hekla.backends.config import BackendConfig, parse_config
from hekla.domain.errors import Invalid, Problem
from hekla.pages.clusters.settings_form import texts
from hekla.pages.clusters.settings_form.fields import FieldKind, SettingField, fields_of

PREFIX = "settings"
MOST_ROWS = 40
"""With more rows in all lists together, lists are entered as JSON: a form has at most a thousand fields."""
_MOST_SENT = 4 * MOST_ROWS
Config = Mapping[str, Any]


@dataclass
class SettingPart:
    """A part of the form: a field, a group of parts, or rows of parts. `path`: its place, for the button “Add”."""

    label: str
    help: str
    path: str
    bound: forms.BoundField | None = None
    parts: list["SettingPart"] = field(default_factory=list)
    rows: list["SettingRow"] | None = None
    is_main: bool = True
    is_filled: bool = False

    @property
    def main(self) -> list["SettingPart"]:
        """The parts that are always visible."""
        return [part for part in self.parts if part.is_main]

    @property
    def more(self) -> list["SettingPart"]:
        """The parts under “More settings”."""
        return [part for part in self.parts if not part.is_main]

    @property
    def is_open(self) -> bool:
        """Whether one of the other settings has a value or a problem."""
        return any(part.needs_attention for part in self.more)

    @property
    def needs_attention(self) -> bool:
        """Whether this part, or one inside, has a value of its own or a problem."""
        inside = [*self.parts, *(row.part for row in self.rows or ())]
        return self.is_filled or bool(self.bound and self.bound.errors) or any(one.needs_attention for one in inside)


@dataclass(frozen=True)
class SettingRow:
    """One row of a list: its parts, and the box that removes it."""

    number: int
    part: SettingPart
    remove: forms.BoundField


class SettingsForm(forms.Form):
    """The configuration of a kind of cluster. `config`: the present one; `data`: what a person entered."""

    use_required_attribute = False

    def __init__(self, model: type[BackendConfig], config: Config, data: QueryDict | None = None) -> None:
        super().__init__(data, prefix=PREFIX)
        self._model, self._config = model, config
        self._settings = fields_of(model)
        self._shape_of: dict[str, SettingField] = {}
        self._more = data.get("more", "") if data else ""
        self._rows_built: dict[str, list[int]] = {}
        self._rows_left = _MOST_SENT
        self._has_rows = self._shows_rows(config)
        self._add_all(self._settings, "", config)
        self.root = self._part("", self._settings, "", config)

    def config(self) -> dict[str, Any]:
        """The configuration, without entries that cannot be read."""
        self._rows_built = {}
        built = self._built(self._settings, "", self._config)
        known = {one.name for one in self._settings}
        return {**{name: value for name, value in self._config.items() if name not in known}, **built}

    def require_valid(self) -> None:
        """Add the problems of the configuration to its fields. Raises Invalid with those that have no field."""
        try:
            parse_config(self._model, self.config())
        except Invalid as error:
            if left := [problem for problem in error.problems if not self._attached(problem)]:
                raise Invalid([Problem("", problem.message) for problem in left]) from error

    def drop_problems(self) -> None:
        """Show the form again as it was entered, without a check."""
        self._errors = forms.utils.ErrorDict()
        self.cleaned_data = {}

    # fields

    def _add_all(self, settings: Sequence[SettingField], path: str, config: Any) -> None:  # noqa: ANN401  (any JSON)
        values = config if isinstance(config, Mapping) else {}
        for one in self._sized(settings):
            here = f"{path}{one.name}"
            if one.shape is FieldKind.GROUP:
                self._add_all(one.parts, f"{here}-", values.get(one.name))
            elif one.shape is FieldKind.ROWS:
                self._add_rows(one, here, values.get(one.name))
            else:
                self._shape_of[here] = one
                self.fields[here] = _form_field(one, self._initial(one, values))

    def _shows_rows(self, config: Config) -> bool:
        """Whether lists have rows of fields: as on the page that was sent, else if they are short enough."""
        if self.is_bound:
            return not any(
                one.shape is FieldKind.ROWS and self.add_prefix(one.name) in self.data for one in self._settings
            )
        return _rows_in(config) <= MOST_ROWS

    def _sized(self, settings: Sequence[SettingField]) -> Iterator[SettingField]:
        """The fields; lists as JSON if there are too many rows."""
        for one in settings:
            yield one if self._has_rows or one.shape is not FieldKind.ROWS else replace(one, shape=FieldKind.JSON)

    def _add_rows(self, one: SettingField, here: str, stored: Any) -> None:  # noqa: ANN401  (any JSON)
        rows = stored if isinstance(stored, list) else []
        for number in range(self._row_count(one, here, len(rows))):
            self._add_all(one.parts, f"{here}-{number}-", rows[number] if number < len(rows) else {})
            self.fields[f"{here}-{number}-remove"] = forms.BooleanField(label=_("Remove"), required=False)

    def _row_count(self, one: SettingField, here: str, stored: int) -> int:
        wanted = max(stored, int(one.is_main)) if not self.is_bound else self._rows_sent(here)
        count = min(wanted, self._rows_left)
        self._rows_left -= count
        return count

    def _rows_sent(self, here: str) -> int:
        pattern = re.compile(rf"{re.escape(self.add_prefix(here))}-(\d{{1,4}})-")
        found = [int(match[1]) + 1 for name in self.data if (match := pattern.match(name))]
        return max(found, default=0) + (self._more == here)

    def _initial(self, one: SettingField, values: Config) -> Any:  # noqa: ANN401  (what the widget takes)
        if one.name in values:
            return texts.text_of(one, values[one.name])
        shows_default = one.shape not in (FieldKind.WHOLE, FieldKind.NUMBER, FieldKind.TEXT, FieldKind.JSON)
        return texts.text_of(one, one.default if shows_default else None)

    # what the page shows

    def _part(self, label: str, settings: Sequence[SettingField], path: str, config: Any) -> SettingPart:  # noqa: ANN401
        values = config if isinstance(config, Mapping) else {}
        return SettingPart(label, "", path, parts=list(self._parts(settings, path, values)))

    def _parts(self, settings: Sequence[SettingField], path: str, values: Config) -> Iterator[SettingPart]:
        for one in self._sized(settings):
            here = f"{path}{one.name}"
            part = SettingPart(one.label, one.help, here, is_main=one.is_main, is_filled=bool(values.get(one.name)))
            if one.shape is FieldKind.GROUP:
                inside = values.get(one.name)
                part.parts = list(self._parts(one.parts, f"{here}-", inside if isinstance(inside, Mapping) else {}))
            elif one.shape is FieldKind.ROWS:
                part.rows = list(self._rows(one, here, values.get(one.name)))
                part.is_filled = part.is_filled or self._more.startswith(here)
            else:
                part.bound = self[here]
            yield part

    def _rows(self, one: SettingField, here: str, stored: Any) -> Iterator[SettingRow]:  # noqa: ANN401  (any JSON)
        rows = stored if isinstance(stored, list) else []
        number = 0
        while f"{here}-{number}-remove" in self.fields:
            config = rows[number] if number < len(rows) else {}
            part = self._part(one.label, one.parts, f"{here}-{number}-", config)
            yield SettingRow(number + 1, part, self[f"{here}-{number}-remove"])
            number += 1

    # back to a configuration

    def _built(self, settings: Sequence[SettingField], path: str, config: Any) -> dict[str, Any]:  # noqa: ANN401
        stored = config if isinstance(config, Mapping) else {}
        found: dict[str, Any] = {}
        for one in self._sized(settings):
            here = f"{path}{one.name}"
            if one.shape is FieldKind.GROUP:
                value = self._group(one, here, stored)
            elif one.shape is FieldKind.ROWS:
                value = self._list(one, here, stored)
            else:
                value = self._value(one, here, stored)
            if value is not _LEFT_OUT:
                found[one.name] = value
        return found

    def _group(self, one: SettingField, here: str, stored: Config) -> Any:  # noqa: ANN401  (any JSON)
        inside = self._built(one.parts, f"{here}-", stored.get(one.name))
        if not inside:
            return None if one.name in stored and stored[one.name] is None else _LEFT_OUT
        if isinstance(one.default, Mapping):
            required = {part.name: one.default[part.name] for part in one.parts if part.is_required}
            return {**required, **inside}
        return inside

    def _list(self, one: SettingField, here: str, stored: Config) -> Any:  # noqa: ANN401  (any JSON)
        rows = stored[one.name] if isinstance(stored.get(one.name), list) else []
        found, numbers, number = [], [], 0
        while f"{here}-{number}-remove" in self.fields:
            row = self._built(one.parts, f"{here}-{number}-", rows[number] if number < len(rows) else {})
            if row and not self._entry(f"{here}-{number}-remove"):
                found.append(row)
                numbers.append(number)
            number += 1
        self._rows_built[here] = numbers
        return found if found or one.name in stored or one.is_required else _LEFT_OUT

    def _value(self, one: SettingField, here: str, stored: Config) -> Any:  # noqa: ANN401  (any JSON)
        entry = self._entry(here)
        if one.name in stored and _same(entry, texts.text_of(one, stored[one.name])):
            return stored[one.name]
        try:
            value = texts.value_of(one, entry)
        except forms.ValidationError:
            return _LEFT_OUT
        shows_default = one.shape in (FieldKind.LINES, FieldKind.PAIRS, FieldKind.CHOICES, FieldKind.FLAG)
        is_default = value == one.default or (value == one.empty and not (shows_default and one.default))
        return _LEFT_OUT if is_default else value

    def _entry(self, here: str) -> Any:  # noqa: ANN401  (what the widget takes)
        if not self.is_bound:
            return self.fields[here].initial
        widget = self.fields[here].widget
        return widget.value_from_datadict(self.data, self.files, self.add_prefix(here)) or _empty(widget)

    # problems

    def _attached(self, problem: Problem) -> bool:
        """Add the problem to its field. False if it has none."""
        settings, path, steps = self._settings, "", problem.path.removeprefix("config.").split(".")
        while steps and (one := next((one for one in settings if one.name == steps[0]), None)):
            path, steps = f"{path}{one.name}", steps[1:]
            if one.shape is FieldKind.ROWS and path not in self.fields and steps and steps[0].isdecimal():
                numbers = self._rows_built.get(path, [])
                path = f"{path}-{numbers[int(steps[0])] if int(steps[0]) < len(numbers) else 0}"
                steps = steps[1:]
            if path in self.fields:
                self.add_error(path, _(": ").join(filter(None, [".".join(steps), problem.message])))
                return True
            settings, path = one.parts, f"{path}-"
        first = next((name for name in self.fields if path and name.startswith(path)), None)
        if first:
            self.add_error(first, problem.message)
        return first is not None

    def clean(self) -> None:
        """Report entries that cannot be read at their fields."""
        for here, one in self._shape_of.items():
            try:
                texts.value_of(one, self._entry(here))
            except forms.ValidationError as error:
                self.add_error(here, error)


def _rows_in(value: Any) -> int:  # noqa: ANN401  (any JSON)
    """The number of mappings inside lists."""
    if isinstance(value, Mapping):
        return sum(map(_rows_in, value.values()))
    return sum(isinstance(one, Mapping) + _rows_in(one) for one in value) if isinstance(value, list) else 0


def _same(entry: Any, text: Any) -> bool:  # noqa: ANN401  (what the widget takes)
    """Whether the entry is the text that the page showed; browsers change line ends."""
    if isinstance(entry, str) and isinstance(text, str):
        return entry.replace("\r\n", "\n").strip() == text.strip()
    return bool(entry == text)


class _LeftOut:
    """The absence of a value: None is one."""


_LEFT_OUT = _LeftOut()


def _empty(widget: forms.Widget) -> Any:  # noqa: ANN401  (what the widget takes)
    if isinstance(widget, forms.CheckboxInput):
        return False
    return [] if isinstance(widget, forms.CheckboxSelectMultiple) else ""


def _form_field(one: SettingField, initial: Any) -> forms.Field:  # noqa: ANN401  (what the widget takes)
    common: dict[str, Any] = {"label": one.label, "help_text": one.help, "required": False, "initial": initial}
    if one.shape is FieldKind.FLAG:
        return forms.BooleanField(**common)
    if one.shape is FieldKind.CHOICE:
        none = [("", _("default"))] if one.is_optional else []
        return forms.ChoiceField(choices=[*none, *((word, word) for word in one.choices)], **common)
    if one.shape is FieldKind.CHOICES:
        words = [(word, word) for word in one.choices]
        return forms.MultipleChoiceField(choices=words, widget=forms.CheckboxSelectMultiple, **common)
    return forms.CharField(widget=_widget(one), strip=False, **common)


def _widget(one: SettingField) -> forms.Widget:
    if one.shape in (FieldKind.LINES, FieldKind.PAIRS, FieldKind.JSON):
        rows = 5 if one.shape is FieldKind.JSON else 3
        return forms.Textarea(attrs={"rows": rows, "class": "code-input", "spellcheck": "false"})
    hint = {"placeholder": str(one.default)} if one.default not in (None, "") else {}
    if one.shape in (FieldKind.WHOLE, FieldKind.NUMBER):
        step = {"step": "1" if one.shape is FieldKind.WHOLE else "any"}
        return forms.NumberInput(attrs={**hint, **step, **(one.bounds or {})})
    return forms.TextInput(attrs={**hint, "autocomplete": "off", "spellcheck": "false"})
