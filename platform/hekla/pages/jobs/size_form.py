"""The form that scales a job: a row for each task, and the minimum of pods for the whole job."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from django import forms
from django.forms import BoundField
from django.http import QueryDict
from django.utils.translation import gettext_lazy

from hekla.apps.forms import attach
from hekla.apps.jobs.facts import spec_of
from hekla.apps.jobs.models import Job
from hekla.domain.errors import HeklaError, Invalid, Problem
from hekla.domain.scaling import JobScale
from hekla.domain.task_spec import MAX_REPLICAS


@dataclass(frozen=True, slots=True)
class TaskSizeRow:
    """The fields of one task."""

    name: str
    replicas: BoundField
    least: BoundField
    autoscaling: tuple[BoundField, ...]
    """Empty for tasks that do not scale by themselves."""

    @property
    def fields(self) -> tuple[BoundField, ...]:
        """All fields."""
        return self.replicas, self.least, *self.autoscaling


class SizeForm(forms.Form):
    """A job's size, current or as typed."""

    revision = forms.IntegerField(widget=forms.HiddenInput, min_value=1)

    def __init__(self, data: QueryDict | None = None, *, job: Job) -> None:
        super().__init__(data, initial={"revision": job.revision}, prefix="size")
        self.spec = spec_of(job)
        self.names = [task.name for task in self.spec.tasks]
        for place, task in enumerate(self.spec.tasks):
            self.fields[f"replicas-{place}"] = _number(gettext_lazy("Replicas"), task.replicas)
            self.fields[f"least-{place}"] = _number(gettext_lazy("Minimum"), task.minimum)
            if rule := task.autoscaling:
                self.fields[f"auto-{place}"] = forms.BooleanField(
                    label=gettext_lazy("Autoscaling"),
                    required=False,
                    initial=True,
                    help_text=gettext_lazy("Off: the task keeps the replicas above."),
                )
                self.fields[f"most-{place}"] = _number(gettext_lazy("Maximum replicas"), rule.max_replicas, least=1)
                self.fields[f"target-{place}"] = _number(
                    gettext_lazy("Target GPU utilization, in percent"), rule.gpu_utilization, least=1, most=100
                )
        self.fields["min_available"] = forms.IntegerField(
            label=gettext_lazy("Minimum pods of the job"),
            required=self.spec.min_available is not None,
            initial=self.spec.min_available,
            min_value=1,
            help_text=gettext_lazy("With fewer pods the job waits. Leave empty for the sum of its tasks."),
        )

    def rows(self) -> Iterator[TaskSizeRow]:
        """The rows of the tasks, in order."""
        for place, name in enumerate(self.names):
            names = (f"auto-{place}", f"most-{place}", f"target-{place}")
            rule = [self[field] for field in names if field in self.fields]
            yield TaskSizeRow(name, self[f"replicas-{place}"], self[f"least-{place}"], tuple(rule))

    def size(self) -> JobScale:
        """The submitted size. Raises Invalid."""
        tasks = {name: self._task(place) for place, name in enumerate(self.names)}
        return JobScale.parse({"tasks": tasks, "min_available": self.cleaned_data["min_available"]})

    def _task(self, place: int) -> dict[str, Any]:
        cleaned = self.cleaned_data
        size = {"replicas": cleaned[f"replicas-{place}"], "min_available": cleaned[f"least-{place}"]}
        if f"most-{place}" not in self.fields:
            return size
        if not cleaned[f"auto-{place}"]:
            return {**size, "autoscaling": None}
        rule = {"max_replicas": cleaned[f"most-{place}"], "gpu_utilization": cleaned[f"target-{place}"]}
        return {**size, "autoscaling": rule}

    def show(self, error: HeklaError) -> None:
        """Show each problem at its field; the rest above."""
        if isinstance(error, Invalid):
            error = Invalid([Problem(self._field(one.path), one.message) for one in error.problems])
        attach(self, error)

    def look_again(self, job: Job) -> None:
        """Make the next submission apply to the job's current revision. The typed values stay."""
        assert isinstance(self.data, QueryDict)  # noqa: S101  (the form is bound)
        self.data = self.data.copy()
        self.data[self.add_prefix("revision")] = str(job.revision)

    def _field(self, path: str) -> str:
        """The field of a path, for example of `tasks.worker.replicas`."""
        head, _, rest = path.partition(".")
        name, _, field = rest.partition(".")
        kinds = {
            "replicas": "replicas",
            "min_available": "least",
            "autoscaling.max_replicas": "most",
            "autoscaling.gpu_utilization": "target",
        }
        return f"{kinds[field]}-{self.names.index(name)}" if head == "tasks" and field in kinds else path


def _number(
    label: Any,  # noqa: ANN401  (a lazy translation)
    first: int,
    *,
    least: int = 0,
    most: int = MAX_REPLICAS,
) -> forms.IntegerField:
    return forms.IntegerField(label=label, initial=first, min_value=least, max_value=most)
