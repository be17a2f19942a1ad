"""The form of a report."""

from collections.abc import Iterator
from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from hekla.apps.accounts.models import User
from hekla.apps.clusters import selectors as clusters
from hekla.apps.forms import attach
from hekla.apps.queues import selectors as queues
from hekla.apps.reports import labels, sections
from hekla.apps.tenancy import selectors as tenancy
from hekla.domain.errors import HeklaError, Invalid, Problem
from hekla.domain.reports import MAX_NAME, ReportEvery, ReportPeriod, ReportScope, ReportSpec
from hekla.pages.frame import time_zone
from hekla.pages.frame.edit_form import ValuesEditForm

_MOST_CHOICES = 500
_SAME = ("name", "period", "every", "time_zone")
_HOURS = [(hour, f"{hour:02}:00") for hour in range(24)]


class ReportForm(forms.Form):
    """A report. `about`: its scope and subject, for example `tenant:lab`."""

    name = forms.CharField(label=_("Name"), max_length=MAX_NAME, help_text=_("For example: use of the last week."))
    about = forms.ChoiceField(label=_("About"), help_text=_("Each reader gets the part that they have access to."))
    sections = forms.MultipleChoiceField(
        label=_("Sections"), widget=forms.CheckboxSelectMultiple, initial=list(sections.DEFAULT)
    )
    period = forms.ChoiceField(label=_("Period"), choices=list(labels.PERIODS.items()), initial=ReportPeriod.WEEK.value)
    every = forms.ChoiceField(label=_("Send"), choices=list(labels.EVERY.items()), initial=ReportEvery.WEEK.value)
    hour = forms.TypedChoiceField(label=_("At"), choices=_HOURS, coerce=int, initial=8)
    time_zone = forms.ChoiceField(
        label=_("Time zone"),
        choices=lambda: [(name, name) for name in time_zone.names()],
        help_text=_("It decides when the report is sent, and where days begin."),
    )
    recipients = forms.CharField(
        label=_("Recipients"),
        required=False,
        max_length=8000,
        widget=forms.Textarea(attrs={"rows": 2}),
        help_text=_("User names, with commas between them. Each must be allowed to see what the report is about."),
    )

    def __init__(self, *args: Any, user: User, is_paused: bool = False, **kwargs: Any) -> None:  # noqa: ANN401
        super().__init__(*args, **kwargs)
        self._paused = is_paused
        self._choose("about", [*_subjects(user)])
        self._choose("sections", [(name, section.label) for name, section in sections.SECTIONS.items()])

    def _choose(self, name: str, choices: list[tuple[Any, Any]]) -> None:
        field = self.fields[name]
        assert isinstance(field, forms.ChoiceField)  # noqa: S101  (declared above)
        field.choices = choices

    def spec(self) -> ReportSpec:
        """The submitted report. Raises Invalid."""
        values = self.cleaned_data
        scope, _colon, subject = values["about"].partition(":")
        document = {name: values[name] for name in (*_SAME, "hour", "sections")}
        people = [name for part in values["recipients"].split(",") if (name := part.strip())]
        more = {"scope": scope, "subject": subject, "recipients": people, "paused": self._paused}
        return ReportSpec.parse({**document, **more})


class ReportChangeForm(ValuesEditForm, ReportForm):
    """An existing report."""


def _subjects(user: User) -> Iterator[tuple[Any, Any]]:
    """What the person may choose, in groups."""
    yield "all", _("everything that the reader may see")
    tenants = [(f"tenant:{one.slug}", one.name) for one in tenancy.visible_to(user)[:_MOST_CHOICES]]
    named_queues = [(f"queue:{one.name}", one.name) for one in queues.visible_to(user)[:_MOST_CHOICES]]
    named_clusters = [(f"cluster:{one.name}", one.name) for one in clusters.all_clusters()]
    groups = ((_("Tenant"), tenants), (_("Queue"), named_queues), (_("Cluster"), named_clusters))
    yield from ((label, choices) for label, choices in groups if choices)


def first_values(spec: ReportSpec) -> dict[str, Any]:
    """Initial values of the form for an existing report."""
    document = spec.document()
    about = "all" if spec.scope is ReportScope.ALL else f"{spec.scope}:{spec.subject}"
    values = {name: document[name] for name in (*_SAME, "hour", "sections")}
    return {**values, "about": about, "recipients": ", ".join(spec.recipients)}


def attach_problems(form: forms.Form, error: HeklaError) -> None:
    """Show an error at the field that it is about."""
    if isinstance(error, Invalid):
        error = Invalid([Problem(_field_of(problem.path), problem.message) for problem in error.problems])
    attach(form, error)


def _field_of(path: str) -> str:
    first = path.partition(".")[0]
    return "about" if first in ("scope", "subject") else first
