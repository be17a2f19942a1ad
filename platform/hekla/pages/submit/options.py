"""What stands beside a new job on its page: by what it varies, and what one wants to hear of it.

What is submitted then is a job, or a sweep.
"""

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
    """A job as it was read from the page, for whom it would be, and the secrets that were typed."""

    spec: JobSpec
    tenant: Tenant
    user: User
    secrets: Mapping[str, str]


class Beside:
    """The same on both pages, the form and the manifest. What is not shown keeps what was typed.

    `first`: the parameters that it begins with. Unless `is_sent`, what was typed is shown again without being judged.
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
        """Whether it can be gone by; else the problems stand in the forms."""
        forms = self.parameters, self.hears
        return all(form.is_valid() for form in forms if form.is_bound)

    @property
    def wrong(self) -> list[BoundField]:
        """The fields in which something is."""
        return [field for form in (self.parameters, self.hears) for field in form if field.errors]

    @property
    def hears_usual(self) -> bool:
        """Whether what holds for all jobs is shown."""
        values = ((self.hears[name].value(), self._usual[name].value()) for name in self._usual.fields)
        return not self.hears.errors and all(_words(one) == _words(other) for one, other in values)

    def sweep(self, spec: JobSpec) -> SweepSpec:
        """The sweep of this job. Raises Invalid."""
        return self.parameters.sweep(spec.name, spec)

    def look(self, draft: Draft, *, now: datetime) -> dict[str, Any]:
        """How many jobs there would be, and the first of them. Raises what submitting them raises."""
        found = batches.check_sweep(spec=self._judged(draft), tenant=draft.tenant, user=draft.user, now=now)
        return {"preview": found[: context.MOST_IN_PREVIEW], "size": len(found)}

    def submit(self, draft: Draft, *, now: datetime) -> str:
        """Take in the job, or all jobs of the sweep; the address of what was made. Raises what submitting raises."""
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
        """Put what is about the parameters, or the ways to be told, beside them; the rest where the job is written."""
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
    """A problem of one of the sweep's jobs, as one of the job in which the placeholders stand."""
    first, _dot, rest = problem.path.partition(".")
    if first == "job":
        return Problem(rest, problem.message)
    if first != "jobs":
        return problem
    number, _dot, path = rest.partition(".")
    return Problem(path, _("Job %(number)s: %(message)s") % {"number": number, "message": problem.message})
