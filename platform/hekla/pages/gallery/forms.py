"""The forms that publish a gallery template, and that fill it in."""

from collections.abc import Mapping, Sequence
from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from hekla.apps.forms import attach
from hekla.domain.errors import HeklaError, Invalid, Problem
from hekla.domain.jobspec import JobSpec
from hekla.domain.templates import OpenField, openable_fields
from hekla.pages.frame.edit_form import ValuesEditForm

MAX_VALUE = 262_144
_WORDS = {
    "queue": _("Queue"),
    "priority": _("Priority"),
    "active_deadline_seconds": _("Maximum run time"),
    "replicas": _("Replicas"),
    "command": _("Command"),
    "environment": _("Environment"),
    "image": _("Image"),
    "resources.cpu": _("CPU"),
    "resources.memory": _("Memory"),
    "resources.nvidia.com/gpu": _("GPUs"),
}


class FillForm(forms.Form):
    """The name of the job, and the open fields of the template."""

    name = forms.CharField(label=_("Job name"), max_length=60, help_text=_("Lowercase letters, digits, hyphens."))
    version = forms.IntegerField(widget=forms.HiddenInput)

    def __init__(self, data: Mapping[str, Any] | None, *, spec: JobSpec, open_: Sequence[OpenField], **kwargs: Any):  # noqa: ANN204, ANN401
        super().__init__(data, **kwargs)
        there = dict(openable_fields(spec))
        self._places = [field.place for field in open_]
        for field in open_:
            self.fields[_name(field.place)] = _control(field, there.get(field.place, ""))

    def values(self) -> dict[str, str]:
        """The values of the open fields, by place."""
        return {place: self.cleaned_data[_name(place)].replace("\r\n", "\n") for place in self._places}

    def show(self, error: HeklaError) -> None:
        """Show each problem at its field, the rest above."""
        if isinstance(error, Invalid):
            error = Invalid([Problem(self._field_at(each.path), each.message) for each in error.problems])
        attach(self, error)

    def look_again(self, version: int) -> None:
        """Make the next submission apply to this version."""
        self.data = {**{name: self.data[name] for name in self.data}, "version": version}

    def _field_at(self, path: str) -> str:
        """The field of a place, or of a path within it, for example a word of a command."""
        inside = (place for place in self._places if path == place or path.startswith(f"{place}."))
        return next(map(_name, inside), path)


class PublishForm(forms.Form):
    """The title and description of the template, and the fields of the job that are open, with their bounds."""

    title = forms.CharField(label=_("Title"), max_length=80)
    description = forms.CharField(
        label=_("Description"), max_length=2000, required=False, widget=forms.Textarea({"rows": 3})
    )
    for_all = forms.BooleanField(label=_("For all tenants"), required=False)

    def __init__(self, data: Mapping[str, Any] | None, *, spec: JobSpec, **kwargs: Any):  # noqa: ANN204, ANN401
        super().__init__(data, **kwargs)
        self.places = list(openable_fields(spec))
        for number, (place, _value) in enumerate(self.places):
            self.fields[f"open-{number}"] = forms.BooleanField(label=label_of(place), required=False)
            self.fields[f"least-{number}"] = forms.CharField(label=_("Lower limit"), max_length=64, required=False)
            self.fields[f"most-{number}"] = forms.CharField(label=_("Upper limit"), max_length=64, required=False)
            self.fields[f"choices-{number}"] = forms.CharField(
                label=_("Allowed values"), max_length=2000, required=False, help_text=_("Separated by |.")
            )

    def rows(self) -> list[dict[str, Any]]:
        """A row for each field of the job: its place, its value, and the controls."""
        names = ("open", "least", "most", "choices")
        return [
            {"place": place, "value": value, **{name: self[f"{name}-{number}"] for name in names}}
            for number, (place, value) in enumerate(self.places)
        ]

    def open_fields(self) -> list[dict[str, Any]]:
        """The open fields, as `gallery.services.publish` takes them."""
        cleaned = self.cleaned_data
        return [
            {
                "place": place,
                "least": cleaned[f"least-{number}"],
                "most": cleaned[f"most-{number}"],
                "choices": [word.strip() for word in cleaned[f"choices-{number}"].split("|") if word.strip()],
            }
            for number, (place, _value) in enumerate(self.places)
            if cleaned[f"open-{number}"]
        ]

    @staticmethod
    def first(fields: Sequence[OpenField], spec: JobSpec) -> dict[str, Any]:
        """The initial values of the form for the next version of a template."""
        known = {field.place: field for field in fields}
        found: dict[str, Any] = {}
        for number, (place, _value) in enumerate(openable_fields(spec)):
            field = known.get(place, OpenField(place=place))
            found |= {f"least-{number}": field.least, f"most-{number}": field.most}
            found |= {f"open-{number}": place in known, f"choices-{number}": " | ".join(field.choices)}
        return found


class PublishChangeForm(ValuesEditForm, PublishForm):
    """The next version of a template."""


def label_of(place: str) -> str:
    """The label of a place in a job. Places in a task begin with the task's name."""
    task, _dot, rest = place.removeprefix("tasks.").partition(".")
    if not place.startswith("tasks."):
        return str(_WORDS.get(place, place.removeprefix("files.")))
    return f"{task} · {_WORDS.get(rest, rest.removeprefix('env.'))}"


def _name(place: str) -> str:
    return f"field-{place}"


def _control(field: OpenField, value: str) -> forms.Field:
    """The form field of an open field, with the template's value as its initial value."""
    options: dict[str, Any] = {
        "label": label_of(field.place),
        "initial": value,
        "required": False,
        "help_text": _help(field),
    }
    if field.choices:
        return forms.ChoiceField(choices=[(word, word) for word in field.choices], **options)
    is_long = field.place.startswith("files.") or field.place.endswith(".command")
    widget = forms.Textarea({"rows": 3, "class": "code-input", "spellcheck": "false"}) if is_long else forms.TextInput()
    return forms.CharField(max_length=MAX_VALUE, strip=False, widget=widget, **options)


def _help(field: OpenField) -> str:
    if field.least and field.most:
        return _("From %(least)s to %(most)s.") % {"least": field.least, "most": field.most}
    if field.least:
        return _("At least %s.") % field.least
    return _("At most %s.") % field.most if field.most else ""
