"""The submission page's three forms as one: what it begins with, what it asks for, and where its problems stand."""

import re
from collections.abc import Sequence
from typing import Any

from django import forms
from django.http import QueryDict

from hekla.apps.forms import attach
from hekla.apps.jobs.forms import FileFormSet, JobForm, TaskFormSet
from hekla.domain.errors import HeklaError, Invalid, Problem, Refused
from hekla.domain.jobspec import JobSpec

_TASK_PATH = re.compile(r"tasks\.(?P<place>\d+)(\.(?P<field>\w+))?(\.(?P<rest>.+))?")
_FIELD_OF_RESOURCE = {"cpu": "cpu", "memory": "memory", "nvidia.com/gpu": "gpus"}
Values = dict[str, Any]


class SubmissionForm:
    """A job with its tasks and its files."""

    def __init__(
        self, data: QueryDict | None, first: "First", *, queues: Sequence[tuple[str, str]], environments: Sequence[str]
    ) -> None:
        self.job = JobForm(data, initial=first.job, queues=queues)
        self.tasks = TaskFormSet(data, initial=first.tasks, prefix="tasks", form_kwargs={"environments": environments})
        self.files = FileFormSet(data, initial=first.files, prefix="files")
        if data is None:
            self.tasks.min_num = 0

    def spec(self) -> JobSpec | None:
        """The JobSpec that was filled in; None, with the problems in the forms, where it is not one."""
        if not all([self.job.is_valid(), self.tasks.is_valid(), self.files.is_valid()]):
            return None
        try:
            return JobSpec.parse(self._document())
        except Invalid as error:
            self.show(error)
            return None

    def _document(self) -> Values:
        files = {
            form.cleaned_data["name"]: form.cleaned_data["text"] for form in self.files if form.cleaned_data.get("name")
        }
        return {**self.job.document(), "tasks": [task.document() for task in self.tasks], "files": files}

    def show(self, error: HeklaError) -> None:
        """Put each problem beside the field that it is about; the rest above."""
        problems = error.problems if isinstance(error, Invalid) else (Problem(_path(error), error.message),)
        for problem in problems:
            form, field = self._place(problem.path)
            if form is None:
                attach(self.job, Invalid([problem]))
            else:
                form.add_error(field, problem.message)

    def _place(self, path: str) -> tuple[forms.Form | None, str | None]:
        if path.startswith("files."):
            name = path.removeprefix("files.")
            return next(((form, "name") for form in self.files if form.cleaned_data.get("name") == name), (None, None))
        match = _TASK_PATH.fullmatch(path)
        if match is None or int(match["place"]) >= len(self.tasks.forms):
            return None, None
        form, field = self.tasks.forms[int(match["place"])], match["field"]
        if field == "resources":
            field = _FIELD_OF_RESOURCE.get(match["rest"] or "")
        return form, field if field in form.fields else None


class First:
    """What the forms begin with."""

    def __init__(self, job: Values | None = None, tasks: Sequence[Values] = (), files: Sequence[Values] = ()) -> None:
        self.job, self.tasks, self.files = (
            dict(job or {}),
            [dict(task) for task in tasks],
            [dict(file) for file in files],
        )


def _path(error: HeklaError) -> str:
    return error.path if isinstance(error, Refused) else ""
