"""The form that changes a job's priority."""

from django import forms
from django.http import QueryDict
from django.utils.translation import gettext_lazy

from hekla.apps.forms import attach
from hekla.apps.jobs.models import Job
from hekla.domain.errors import HeklaError
from hekla.domain.job_kinds import MAX_PRIORITY


class PriorityForm(forms.Form):
    """A job's priority, current or as typed."""

    revision = forms.IntegerField(widget=forms.HiddenInput, min_value=1)
    priority = forms.IntegerField(
        label=gettext_lazy("Priority"),
        min_value=-MAX_PRIORITY,
        max_value=MAX_PRIORITY,
        help_text=gettext_lazy(
            "Jobs with a higher priority come first in the queue. Takes effect in the next scheduling cycle. "
            "Running pods continue."
        ),
    )

    def __init__(self, data: QueryDict | None = None, *, job: Job) -> None:
        first = {"revision": job.revision, "priority": job.priority}
        super().__init__(data, initial=first, prefix="priority")

    def show(self, error: HeklaError, job: Job) -> None:
        """Show the problem at its field, and make the next submission apply to the job's current revision."""
        attach(self, error)
        assert isinstance(self.data, QueryDict)  # noqa: S101  (the form is bound)
        self.data = self.data.copy()
        self.data[self.add_prefix("revision")] = str(job.revision)
