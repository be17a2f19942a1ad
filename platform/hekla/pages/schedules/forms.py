"""Forms of schedules."""

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from hekla.domain import formats
from hekla.domain.errors import Invalid, Problem
from hekla.domain.jobspec import JobSpec
from hekla.domain.schedules import MAX_NAME, Concurrency, ScheduleSpec
from hekla.domain.validation import join
from hekla.pages.frame.durations import DurationField
from hekla.pages.frame.edit_form import ValuesEditForm

_CONCURRENCY = [
    (Concurrency.ALLOW.value, _("Allow both")),
    (Concurrency.FORBID.value, _("Skip the new run")),
    (Concurrency.REPLACE.value, _("Stop the earlier run")),
]
_ORIGIN = "job"


class ScheduleForm(forms.Form):
    """A schedule. Its job is a manifest of any format that can be submitted."""

    name = forms.CharField(
        label=_("Name"),
        max_length=MAX_NAME,
        help_text=_("Lowercase letters, digits, hyphens. Job names are this name plus a number."),
    )
    cron = forms.CharField(
        label=_("Time"),
        max_length=200,
        initial="0 2 * * *",
        help_text=_("Minute, hour, day, month, weekday: 30 2 * * mon-fri, */15 * * * *, @daily."),
    )
    time_zone = forms.CharField(
        label=_("Time zone"), max_length=64, initial="UTC", help_text=_("For example Europe/Berlin or Asia/Shanghai.")
    )
    concurrency = forms.ChoiceField(label=_("If the earlier run has not finished"), choices=_CONCURRENCY)
    starting_deadline_seconds = DurationField(
        label=_("Starting deadline"),
        required=False,
        minimum=1,
        help_text=_("Runs that are later than this are skipped. Leave empty for no deadline."),
    )
    successful_jobs_history_limit = forms.IntegerField(label=_("Completed jobs kept"), min_value=0, initial=3)
    failed_jobs_history_limit = forms.IntegerField(label=_("Failed jobs kept"), min_value=0, initial=1)
    suspended = forms.BooleanField(label=_("Suspended: no runs for now"), required=False)
    manifest = forms.CharField(
        label=_("Job"),
        strip=False,
        widget=forms.Textarea(attrs={"rows": 20, "class": "code-input", "spellcheck": "false"}),
        help_text=_(
            "A job manifest of Volcano, Kubeflow, Ray, Spark, Flink or Kubernetes. The name in the manifest is ignored."
        ),
    )

    def __init__(self, *args: Any, named: str = "", **kwargs: Any) -> None:  # noqa: ANN401
        super().__init__(*args, **kwargs)
        self.fields["time_zone"].widget.attrs["list"] = "time-zones"
        if named:
            del self.fields["name"]
        self.named = named
        self.warnings: tuple[str, ...] = ()

    def spec(self) -> ScheduleSpec:
        """The submitted schedule. Raises Invalid, with the problems of the job at the manifest field."""
        filled = {name: value for name, value in self.cleaned_data.items() if name != "manifest" and value is not None}
        try:
            loaded = formats.load(self.cleaned_data["manifest"])
        except Invalid as error:
            raise Invalid([_at_manifest(problem) for problem in error.problems]) from error
        self.warnings = loaded.warnings
        try:
            return ScheduleSpec.parse({"name": self.named, **filled, "job": loaded.spec.document()})
        except Invalid as error:
            raise Invalid([_in_form(problem) for problem in error.problems]) from error


class ScheduleChangeForm(ValuesEditForm, ScheduleForm):
    """An existing schedule."""


def first_values(spec: ScheduleSpec) -> dict[str, Any]:
    """Initial values of the form for an existing schedule."""
    job = spec.job.model_copy(update={"name": spec.name})
    return {**spec.model_dump(mode="json", exclude={"job"}), "manifest": formats.dump(job)}


def first_job(job: JobSpec) -> dict[str, Any]:
    """Initial values of the form for a schedule of an existing job."""
    return {"name": job.name[:MAX_NAME].rstrip("-"), "manifest": formats.dump(job)}


def _at_manifest(problem: Problem) -> Problem:
    return Problem("manifest", f"{problem.path}: {problem.message}" if problem.path else problem.message)


def _in_form(problem: Problem) -> Problem:
    first, _dot, rest = problem.path.partition(".")
    return _at_manifest(Problem(join(rest), problem.message)) if first == _ORIGIN else problem
