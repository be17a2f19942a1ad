"""The forms of the submission page as one: initial values, submitted values, and the fields of problems."""

import re
from collections.abc import Iterable, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

from django import forms
from django.http import QueryDict
from django.utils.translation import gettext as _

from hekla.domain import frameworks, sweeps
from hekla.domain.errors import HeklaError, Invalid, Problem, Refused
from hekla.domain.jobspec import JobSpec
from hekla.pages.frame import durations
from hekla.pages.job_forms import git_code, passthrough_fields, volume_forms
from hekla.pages.job_forms.forms import Choices, FileFormSet, JobForm, TaskFormSet
from hekla.pages.job_forms.volume_forms import VolumeFormSet, VolumeRows

_TASK_PATH = re.compile(r"tasks\.(?P<place>\d+)(\.(?P<field>\w+))?(\.(?P<rest>.+))?")
Values = dict[str, Any]
_ROUNDS = 4  # each without the fields that were wrong before; contradictions between fields appear late


class SubmissionForm:
    """A job with its tasks, files and volumes. `claims`: the claims to volumes that it offers."""

    def __init__(
        self,
        data: QueryDict | None,
        first: "InitialValues",
        *,
        queues: Choices,
        environments: Sequence[str],
        gpu_models: Sequence[str] = (),
        classes: Choices = (),
        tiers: Iterable[str] = (),
        claims: Sequence[str] = (),
    ) -> None:
        self.claims = claims
        data = _completed(data) if data is not None else None
        self.job = JobForm(data, initial=first.job, queues=queues, classes=classes, tiers=tiers)
        has_commands = bool(frameworks.commands({str(self.job["framework"].value()): []}))
        kwargs = {
            "environments": environments,
            "gpu_models": gpu_models,
            "needs_command": not has_commands,
            "empty_permitted": False,
        }
        self.tasks = TaskFormSet(data, initial=first.tasks, prefix="tasks", form_kwargs=kwargs)
        self.files = FileFormSet(data, initial=first.files, prefix="files")
        self.volumes = VolumeFormSet(data, initial=first.volumes, prefix=volume_forms.PREFIX)
        self._mounts_before: list[int] = []
        self._rows: VolumeRows | None = None
        if data is None:
            self.tasks.min_num = 0

    def spec(self) -> JobSpec | None:
        """The submitted JobSpec; None if it is invalid, with the problems in the forms."""
        draft = self.draft()
        return None if self.is_wrong else draft

    def draft(self) -> JobSpec | None:
        """The job with harmless values in place of wrong fields, so that it can be judged further.

        All problems found on the way are in the forms. None if even so it is no job.
        """
        self._are_valid()
        for _round in range(_ROUNDS):
            try:
                return JobSpec.parse(self._document())
            except Invalid as error:
                self.show(error)
        return None

    @property
    def is_wrong(self) -> bool:
        """Whether a form has an error."""
        formsets = (self.tasks, self.files, self.volumes)
        return bool(self.job.errors or any(formset.total_error_count() for formset in formsets))

    @property
    def problems(self) -> dict[str, list[str]]:
        """The messages by the id of their field; those of no field under the empty id."""
        found: dict[str, list[str]] = {}
        for form in (self.job, *self.tasks, *self.files, *self.volumes):
            for name, messages in form.errors.items():
                field = form[name].id_for_label if name in form.fields else ""
                found.setdefault(field or "", []).extend(map(str, messages))
        return found

    def _are_valid(self) -> bool:
        valid = [form.is_valid() for form in (self.job, self.tasks, self.files, self.volumes)]
        return all(valid)

    def _document(self) -> Values:
        job, typed = self.job.document(), [form.cleaned_data for form in self.files]
        files = {file["name"]: file.get("text", "") for file in typed if file.get("name")}
        tasks = [self._with_code(task.document()) for task in self.tasks]
        job = passthrough_fields.with_its_volumes(job, tasks)
        volumes, tasks = self._mounted(job.get("volumes", []), tasks)
        document = {**job, "tasks": tasks, "files": job.get("files", {}) | files, "volumes": volumes}
        return document | self._without_judgement(tasks)

    def _with_code(self, task: Values) -> Values:
        """The task with a clone of the code before its command, if the job has an address for that."""
        address, revision = (self.job.cleaned_data.get(name, "") for name in ("git_address", "git_revision"))
        if not address or not task.get("command"):
            return task
        return task | {"command": git_code.with_code(task["command"], address, revision)}

    def _mounted(self, carried: Sequence[Any], tasks: Sequence[Values]) -> tuple[list[Any], list[Values]]:
        """The volumes of the job and the tasks with their mounts: the passthrough ones, then those of the rows."""
        names = [str(task["name"]) for task in tasks]
        if not any("name" in task.errors for task in self.tasks):
            volume_forms.refuse_unknown_tasks(self.volumes, names)
        used = {str(one.get("name")) for one in carried if isinstance(one, dict)}
        self._rows = rows = VolumeRows(self.volumes, names, used)
        before = [task.get("volume_mounts", []) for task in tasks]
        self._mounts_before = [len(mounts) for mounts in before]
        mounted = [
            task | {"volume_mounts": rows.mounts(name, mounts)}
            for task, name, mounts in zip(tasks, names, before, strict=True)
        ]
        return rows.volumes(carried), mounted

    def _without_judgement(self, tasks: Sequence[Values]) -> Values:
        """Replaces what cannot be judged while names or replicas of tasks are wrong."""
        wrong = {name for task in self.tasks for name in task.errors}
        changed: Values = {"min_available": None} if "replicas" in wrong else {}
        if "name" in wrong:
            changed |= {"plugins": {}, "tasks": [task | {"depends_on": None} for task in tasks]}
        return changed

    def typed(self) -> "InitialValues":
        """The current values of all fields, valid or not, as initial values of another form."""
        formsets = (self.tasks, self.files, self.volumes)
        return InitialValues(_typed(self.job), *([_typed(form) for form in formset] for formset in formsets))

    @property
    def shape(self) -> str:
        """The kind of job, which selects the visible fields."""
        return self.job["shape"].value() or "distributed"

    @property
    def is_of_several(self) -> bool:
        """Whether the job has, or is likely to get, several pods: then the fields that distinguish them are visible."""
        replicas = {str(form["replicas"].value()) for form in self.tasks}
        return self.shape in ("distributed", "sweep") or len(self.tasks.forms) > 1 or replicas != {"1"}

    @property
    def secrets(self) -> dict[str, str]:
        """The secrets in the form, by name."""
        return dict(self.job.cleaned_data.get("secrets", {}))

    @property
    def also(self) -> list[str]:
        """The labels of the job's passthrough fields, which the form does not show."""
        forms = [(None, self.job), *((task["name"].value(), task) for task in self.tasks)]
        found = [(name, word) for name, form in forms for word in passthrough_fields.words(_rest(form))]
        return [f"{name}: {word}" if name else word for name, word in found]

    def show(self, error: HeklaError) -> None:
        """Show each problem at its field; the rest above."""
        problems = error.problems if isinstance(error, Invalid) else (Problem(_path(error), error.message),)
        for problem in problems:
            form, name = self._place(problem.path)
            if form is None:
                form, name = self.job, problem.path if problem.path in self.job.fields else None
            text = problem.message if name or not problem.path else _(": ").join((problem.path, problem.message))
            # One problem a field is enough, because the next may follow from it.
            if text not in form.non_field_errors() if name is None else name not in form.errors:
                form.add_error(name, text)

    def _place(self, path: str) -> tuple[forms.Form | None, str | None]:
        if path.startswith("files."):
            name = path.removeprefix("files.")
            return next(((form, "name") for form in self.files if form.cleaned_data.get("name") == name), (None, None))
        if self._rows and (found := self._rows.place(path, self._mounts_before)):
            return found
        match = _TASK_PATH.fullmatch(path)
        if match is None or int(match["place"]) >= len(self.tasks.forms):
            return None, None
        form, name = self.tasks.forms[int(match["place"])], match["field"]
        if name == "resources":
            name = passthrough_fields.FIELD_OF_RESOURCE.get(match["rest"] or "", "")
        if name == "autoscaling":
            name = match["rest"] if match["rest"] in passthrough_fields.FIELDS_OF_AUTOSCALING else "gpu_utilization"
        return form, name if name in form.fields else None


@dataclass(frozen=True, slots=True)
class InitialValues:
    """The initial values of the forms."""

    job: Values = field(default_factory=dict)
    tasks: Sequence[Values] = ()
    files: Sequence[Values] = ()
    volumes: Sequence[Values] = ()

    def copy(self) -> "InitialValues":
        """A deep copy that can be changed."""
        return deepcopy(self)


def _typed(form: forms.Form) -> Values:
    return {name: _initial(field, field.bound_data(form[name].data, None)) for name, field in form.fields.items()}


def _initial(field: forms.Field, typed: Any) -> Any:  # noqa: ANN401
    """The typed value as an initial one: durations in seconds, if they are readable."""
    seconds = durations.read(typed.strip()) if isinstance(field, durations.DurationField) and typed else None
    return typed if seconds is None else seconds


def _completed(data: QueryDict) -> QueryDict:
    """The data with no rows of volumes if it has none (a draft from before), and for a sweep with each placeholder as a
    single word of its command.
    """
    copy = data.copy()
    for count in ("TOTAL_FORMS", "INITIAL_FORMS"):
        copy.setdefault(f"{volume_forms.PREFIX}-{count}", "0")
    if copy.get("shape") != "sweep":
        return copy
    for name in [name for name in copy if name.startswith("tasks-") and name.endswith("-command")]:
        copy[name] = sweeps.compact_placeholders(str(copy[name]))
    return copy


def _rest(form: forms.Form) -> passthrough_fields.Rest:
    """The passthrough values of a form; empty if they were damaged."""
    if form.is_bound:
        return getattr(form, "cleaned_data", {}).get("rest") or {}
    return form.get_initial_for_field(form.fields["rest"], "rest") or {}


def _path(error: HeklaError) -> str:
    return error.path if isinstance(error, Refused) else ""
