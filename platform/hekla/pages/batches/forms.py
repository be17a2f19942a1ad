"""Forms of batches."""

from typing import Any

from django import forms
from django.http import QueryDict
from django.utils.translation import gettext_lazy as _

from hekla.domain import formats, sweeps
from hekla.domain.errors import Invalid, Problem
from hekla.domain.jobspec import JobSpec
from hekla.domain.sweep_tables import MAX_BYTES, parse_table
from hekla.domain.sweeps import MAX_JOBS, MAX_NAME, SweepMethod, SweepSpec
from hekla.pages.job_forms.manifest_forms import ManifestForm

_HOW = [
    (SweepMethod.GRID.value, _("All combinations")),
    (SweepMethod.LIST.value, _("Pairs: the first values together, then the second …")),
    (SweepMethod.RANDOM.value, _("Random")),
    ("table", _("Table: a row for each job")),
]
_TABLE = "table"
_NAME_HELP = _("Lowercase letters, digits, hyphens.")


def _code(rows: int) -> forms.Textarea:
    return forms.Textarea(attrs={"rows": rows, "class": "code-input", "spellcheck": "false"})


class ParametersForm(forms.Form):
    """The parameters of a sweep, and how they combine into jobs."""

    parameters = forms.CharField(
        label=_("Parameters"),
        widget=_code(4),
        help_text=_(
            "One per line: lr = 0.1, 0.01. Random values also take ranges: lr = 0.0001..0.1 log, width = 16..256 whole."
            " As a table: paste it from a spreadsheet or as CSV, with the names of the parameters in its first line."
        ),
    )
    how = forms.ChoiceField(label=_("Combinations"), choices=_HOW, initial=SweepMethod.GRID.value)
    count = forms.IntegerField(
        label=_("Samples"),
        required=False,
        min_value=1,
        max_value=MAX_JOBS,
        help_text=_("Only for random values."),
    )
    seed = forms.IntegerField(
        label=_("Seed"), required=False, min_value=0, help_text=_("The same seed gives the same values.")
    )

    def clean_parameters(self) -> dict[str, Any]:
        """The values of each parameter by name, in their order."""
        if self["how"].value() == _TABLE:
            try:
                return dict(parse_table(self.cleaned_data["parameters"]))
            except ValueError as error:
                raise forms.ValidationError(str(error)) from error
        found: dict[str, Any] = {}
        for line in self.cleaned_data["parameters"].splitlines():
            if not line.strip():
                continue
            try:
                name, values = sweeps.parse_parameter(line)
            except ValueError as error:
                raise forms.ValidationError(str(error)) from error
            if name in found:
                raise forms.ValidationError(_("“%s” is set twice.") % name)
            found[name] = values
        return found

    def clean_how(self) -> str:
        """The method of the sweep: the rows of a table are the values in pairs."""
        how: str = self.cleaned_data["how"]
        return SweepMethod.LIST.value if how == _TABLE else how

    def sweep(self, name: str, job: JobSpec) -> SweepSpec:
        """The sweep of this job. Raises Invalid; paths into the job begin with `job`."""
        cleaned = self.cleaned_data
        optional = {name: cleaned[name] for name in ("count", "seed") if cleaned[name] is not None}
        document = {"name": name, "how": cleaned["how"], "parameters": cleaned["parameters"], **optional}
        return SweepSpec.parse({**document, "job": job.document()})


class SweepForm(ParametersForm):
    """A sweep: parameters, and a job manifest with their placeholders."""

    name = forms.CharField(
        label=_("Name"), max_length=MAX_NAME, help_text=_("Job names are this name plus a number: lr-1, lr-2 …")
    )
    manifest = forms.CharField(
        label=_("Job"),
        strip=False,
        widget=_code(20),
        help_text=_("A job manifest of any format. {{ lr }} in commands and variables is replaced by the value of lr."),
    )
    table = forms.FileField(
        label=_("Or a CSV file"), required=False, help_text=_("It becomes the parameters, a row for each job.")
    )
    field_order = ["name", "how", "count", "seed", "parameters", "table", "manifest"]

    def __init__(self, data: QueryDict | None = None, files: Any = None, **kwargs: Any) -> None:  # noqa: ANN401
        upload = files.get("table") if files else None
        if data is not None and upload and (upload.size or 0) <= MAX_BYTES:
            data = data.copy()  # so that the page shows the file's text for correction
            data["parameters"], data["how"] = upload.read().decode("utf-8-sig", errors="replace"), _TABLE
        super().__init__(data, files, **kwargs)

    def clean_table(self) -> None:
        """The file is read already. Refuses one that is too large."""
        upload = self.cleaned_data["table"]
        if upload and (upload.size or 0) > MAX_BYTES:
            raise forms.ValidationError(_("The file has %.1f MiB. The limit is 1 MiB.") % (upload.size / 2**20))

    def spec(self) -> tuple[SweepSpec, tuple[str, ...]]:
        """The sweep, and warnings about fields without effect. Raises Invalid, with each problem at its field."""
        cleaned = self.cleaned_data
        try:
            loaded = formats.load(cleaned["manifest"])
        except Invalid as error:
            raise Invalid([_at("manifest", problem) for problem in error.problems]) from error
        try:
            return self.sweep(cleaned["name"], loaded.spec), loaded.warnings
        except Invalid as error:
            raise Invalid([_in_form(problem) for problem in error.problems]) from error


class ManifestsForm(ManifestForm):
    """Several manifests in one text."""

    name = forms.CharField(label=_("Name"), max_length=MAX_NAME, help_text=_NAME_HELP)
    field_order = ["name", "text", "upload"]

    def __init__(self, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401
        super().__init__(*args, **kwargs)
        self.fields["text"].help_text = _(
            "Up to 1,000 job manifests of any format, at most 1 MiB. Separate them with ---."
        )

    def specs(self) -> tuple[list[JobSpec], tuple[str, ...]]:
        """The jobs, and at most 20 warnings about fields without effect. Raises Invalid."""
        loaded = formats.load_many(self.cleaned_data["text"])
        warnings = [f"{one.spec.name}: {warning}" for one in loaded for warning in one.warnings]
        return [one.spec for one in loaded], tuple(warnings[:20])


def first_job(job: JobSpec) -> dict[str, Any]:
    """Initial values of the form for a sweep over an existing job."""
    return {"name": job.name[:MAX_NAME].rstrip("-"), "manifest": formats.dump(job)}


def _at(field: str, problem: Problem) -> Problem:
    return Problem(field, f"{problem.path}: {problem.message}" if problem.path else problem.message)


def _in_form(problem: Problem) -> Problem:
    first, _dot, rest = problem.path.partition(".")
    field = {"job": "manifest", "parameters": "parameters"}.get(first)
    return _at(field, Problem(rest, problem.message)) if field else problem
