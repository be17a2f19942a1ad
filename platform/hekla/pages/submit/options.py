"""The options beside a new job: sweep parameters and notification preferences. The submission is a job or a sweep."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.forms import BoundField
from django.http import QueryDict
from django.urls import reverse
from django.utils.translation import gettext as _

from hekla.apps.accounts.models import User
from hekla.apps.batches import services as batches
from hekla.apps.jobs import services as jobs
from hekla.apps.notifications import selectors as notifications
from hekla.apps.notifications import services as submitting
from hekla.apps.notifications.forms import ChoiceForm
from hekla.apps.tenancy.models import Tenant
from hekla.domain.errors import HeklaError, Invalid, Problem, Refused
from hekla.domain.jobspec import JobSpec
from hekla.domain.sweeps import SweepSpec
from hekla.pages.batches import context
from hekla.pages.batches.forms import ParametersForm

SWEEP = "sweep"
_PREFIX, _HEARS = "sweep", "notify"


@dataclass(frozen=True, slots=True)
class Draft:
    """A job read from the page, with its tenant, its user and the typed secrets."""

    spec: JobSpec
    tenant: Tenant
    user: User
    secrets: Mapping[str, str]


class SubmissionOptions:
    """The options on both pages, the form and the manifest. Hidden options keep their typed values.

    `first`: the initial sweep parameters. Unless `is_sent`, the typed values are shown again without validation.
    """

    def __init__(
        self, data: QueryDict | None, shape: str, user: User, *, is_sent: bool = True, first: str = ""
    ) -> None:
        self.is_sweep = shape == SWEEP
        sent = data or QueryDict()
        fields = {name: sent.get(f"{_PREFIX}-{name}", "") for name in ParametersForm.base_fields}
        typed = {"parameters": first} | {name: text for name, text in fields.items() if text}
        self.parameters = ParametersForm(
            data if is_sent and self.is_sweep else None, initial=typed, prefix=_PREFIX, use_required_attribute=False
        )
        usual, is_judged = notifications.preference(user), is_sent and not self.is_sweep
        self.hears = ChoiceForm.beside(data, usual, _HEARS, is_sent=is_judged)
        self._usual = ChoiceForm.showing(usual)

    def is_valid(self) -> bool:
        """Whether the options are valid; if not, the forms have the problems."""
        forms = self.parameters, self.hears
        return all(form.is_valid() for form in forms if form.is_bound)

    @property
    def wrong(self) -> list[BoundField]:
        """The fields with errors."""
        return [field for form in (self.parameters, self.hears) for field in form if field.errors]

    @property
    def hears_usual(self) -> bool:
        """Whether the notification options equal the person's preferences for all jobs."""
        values = ((self.hears[name].value(), self._usual[name].value()) for name in self._usual.fields)
        return not self.hears.errors and all(_words(one) == _words(other) for one, other in values)

    def sweep(self, spec: JobSpec) -> SweepSpec:
        """The sweep of this job. Raises Invalid."""
        return self.parameters.sweep(spec.name, spec)

    def look(self, draft: Draft, *, now: datetime) -> dict[str, Any]:
        """A preview: the number of jobs, and the first of them. Raises what submitting them raises."""
        found = batches.check_sweep(spec=self._judged(draft), tenant=draft.tenant, user=draft.user, now=now)
        return {"preview": found[: context.MOST_IN_PREVIEW], "size": len(found)}

    def find_problems(self, draft: Draft, *, now: datetime) -> list[Problem]:
        """Everything for which the job with its placeholders would be refused now."""
        return jobs.find_problems(
            spec=draft.spec,
            tenant=draft.tenant,
            user=draft.user,
            now=now,
            secrets=draft.secrets,
            has_own_name=not self.is_sweep,
        )

    @property
    def problems(self) -> dict[str, list[str]]:
        """The messages by the id of their field."""
        return {field.id_for_label: [*map(str, field.errors)] for field in self.wrong}

    def submit(self, draft: Draft, *, now: datetime) -> str:
        """Submit the job or all jobs of the sweep. Returns the URL of the new job or batch. Raises what submitting
        raises.
        """
        tenant, user = draft.tenant, draft.user
        if self.is_sweep:
            batch = batches.submit_sweep(spec=self._judged(draft), tenant=tenant, user=user, now=now)
            return reverse("batches:detail", args=[batch.uid])
        choice = self.hears.values() if self.hears.is_bound else None
        job = submitting.submit(
            spec=draft.spec, tenant=tenant, user=user, now=now, choice=choice, secrets=draft.secrets
        )
        return reverse("jobs:detail", args=[job.uid])

    def _judged(self, draft: Draft) -> SweepSpec:
        if draft.secrets:
            raise Refused(_("Sweep jobs cannot use secrets. Submit jobs with secrets one by one."), "secrets")
        return self.sweep(draft.spec)

    def show(self, error: HeklaError, show_in_job: Callable[[HeklaError], None]) -> None:
        """Show problems of the options at their fields, and pass the others to `show_in_job`."""
        if not isinstance(error, Invalid):
            show_in_job(error)
            return
        rest = [problem for problem in map(_of_the_job, error.problems) if not self._took(problem)]
        if rest:
            show_in_job(Invalid(rest))

    def _took(self, problem: Problem) -> bool:
        field, _dot, rest = problem.path.partition(".")
        if field == "notify_by":
            self.hears.add_error("channels", problem.message)
            return True
        if not self.is_sweep or field not in self.parameters.fields:
            return False
        self.parameters.add_error(field, f"{rest}: {problem.message}" if rest else problem.message)
        return True


def _words(value: object) -> set[str]:
    return {str(one) for one in value} if isinstance(value, list) else {str(value)}


def _of_the_job(problem: Problem) -> Problem:
    """A problem of one job of the sweep, turned into a problem of the job with the placeholders."""
    first, _dot, rest = problem.path.partition(".")
    if first == "job":
        return Problem(rest, problem.message)
    if first != "jobs":
        return problem
    number, _dot, path = rest.partition(".")
    return Problem(path, _("Job %(number)s: %(message)s") % {"number": number, "message": problem.message})
