"""The submission form: a job and its tasks as people fill them in, turned into one JobSpec."""

import re
import shlex
from collections.abc import Sequence
from typing import Any

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from hekla.apps.forms import attach
from hekla.domain.errors import HeklaError, Invalid, Problem
from hekla.domain.jobspec import JobSpec

MAX_MANIFEST_BYTES = 1024 * 1024
FRAMEWORKS = [
    ("", gettext_lazy("None")),
    ("tensorflow", gettext_lazy("TensorFlow addresses (TF_CONFIG)")),
    ("pytorch", gettext_lazy("PyTorch addresses (MASTER_ADDR, RANK)")),
]
_TASK_FIELD = re.compile(r"^tasks\.(\d+)\.(\w+)")
_FIELD_OF_PATH = {"resources": {"cpu": "cpu", "memory": "memory", "nvidia.com/gpu": "gpus"}}


class JobForm(forms.Form):
    """What is about the job as a whole."""

    name = forms.CharField(
        label=gettext_lazy("Name"), max_length=60, help_text=gettext_lazy("Small letters, digits, hyphens.")
    )
    queue = forms.ChoiceField(label=gettext_lazy("Queue"))
    framework = forms.ChoiceField(label=gettext_lazy("Framework"), choices=FRAMEWORKS, required=False)
    min_available = forms.IntegerField(
        label=gettext_lazy("Start with at least"),
        required=False,
        min_value=1,
        help_text=gettext_lazy("So many pods start together or none does. Empty: all of them."),
    )
    priority = forms.IntegerField(label=gettext_lazy("Priority"), initial=0, required=False)
    restart = forms.BooleanField(
        label=gettext_lazy("Restart the whole job when a pod fails or is evicted"), required=False, initial=False
    )
    max_retry = forms.IntegerField(
        label=gettext_lazy("At most so many restarts"), min_value=1, initial=3, required=False
    )
    ttl_seconds_after_finished = forms.IntegerField(
        label=gettext_lazy("Delete after"),
        required=False,
        min_value=0,
        help_text=gettext_lazy("Seconds after its end. Empty: it stays."),
    )
    file_name = forms.CharField(label=gettext_lazy("File"), required=False, max_length=255)
    file_text = forms.CharField(
        label=gettext_lazy("Its text"),
        required=False,
        strip=False,
        widget=forms.Textarea(attrs={"rows": 10, "class": "code-input", "spellcheck": "false"}),
        help_text=gettext_lazy("Put into the working folder of every pod, for example train.py."),
    )

    def __init__(self, *args: Any, queues: Sequence[tuple[str, str]], **kwargs: Any) -> None:  # noqa: ANN401
        super().__init__(*args, **kwargs)
        self.fields["queue"].choices = queues  # type: ignore[attr-defined]


class TaskForm(forms.Form):
    """One task (role)."""

    name = forms.CharField(label=gettext_lazy("Task"), max_length=63)
    replicas = forms.IntegerField(label=gettext_lazy("Replicas"), min_value=0, initial=1)
    command = forms.CharField(
        label=gettext_lazy("Command"),
        widget=forms.Textarea(attrs={"rows": 2, "class": "code-input", "spellcheck": "false"}),
        help_text=gettext_lazy(
            "A program and its arguments, such as: python train.py --epochs 10. For a shell: sh -c '…'."
        ),
    )
    cpu = forms.CharField(label=gettext_lazy("CPU"), initial="1", required=False)
    memory = forms.CharField(label=gettext_lazy("Memory"), initial="512Mi", required=False)
    gpus = forms.CharField(label=gettext_lazy("GPUs"), required=False)
    environment = forms.ChoiceField(label=gettext_lazy("Environment"), required=False)
    env = forms.CharField(
        label=gettext_lazy("Variables"),
        required=False,
        widget=forms.Textarea(attrs={"rows": 2, "class": "code-input", "spellcheck": "false"}),
        help_text=gettext_lazy("One NAME=value a line."),
    )

    def __init__(self, *args: Any, environments: Sequence[str] = (), **kwargs: Any) -> None:  # noqa: ANN401
        super().__init__(*args, **kwargs)
        choices = [("", gettext_lazy("The console's own")), *((name, name) for name in environments)]
        self.fields["environment"].choices = choices  # type: ignore[attr-defined]

    def clean_command(self) -> list[str]:
        """The words of the command line."""
        try:
            return shlex.split(self.cleaned_data["command"])
        except ValueError as error:
            raise forms.ValidationError(_("A quotation mark is open: %s.") % error) from error

    def clean_env(self) -> dict[str, str]:
        """Names and values."""
        lines = [line for line in self.cleaned_data["env"].splitlines() if line.strip()]
        wrong = [line for line in lines if "=" not in line]
        if wrong:
            raise forms.ValidationError(_("“%s” is not of the form NAME=value.") % wrong[0][:60])
        return dict(line.split("=", 1) for line in lines)

    def document(self) -> dict[str, Any]:
        """As a task of a JobSpec document."""
        given = self.cleaned_data
        amounts = {"cpu": given["cpu"], "memory": given["memory"], "nvidia.com/gpu": given["gpus"]}
        return {
            "name": given["name"],
            "replicas": given["replicas"],
            "command": given["command"],
            "resources": {name: amount.strip() for name, amount in amounts.items() if amount.strip()},
            "env": given["env"],
            "environment": given["environment"],
        }


class BaseTaskFormSet(forms.BaseFormSet):
    """All tasks of a job."""


TaskFormSet = forms.formset_factory(
    TaskForm, formset=BaseTaskFormSet, extra=0, min_num=1, max_num=50, validate_min=True, validate_max=True
)


def document_of(job: JobForm, tasks: BaseTaskFormSet) -> dict[str, Any]:
    """Both forms (clean) as one JobSpec document."""
    given = job.cleaned_data
    document = {
        "name": given["name"],
        "queue": given["queue"],
        "tasks": [task.document() for task in tasks],
        "plugins": {"env": [], "svc": []} | ({given["framework"]: []} if given["framework"] else {}),
        "files": {given["file_name"]: given["file_text"].replace("\r\n", "\n")} if given["file_name"] else {},
    }
    for name in ("min_available", "priority", "max_retry", "ttl_seconds_after_finished"):
        if given[name] is not None:
            document[name] = given[name]
    if given["restart"]:
        document["policies"] = [{"events": ["PodFailed", "PodEvicted"], "action": "RestartJob"}]
    return document


def spec_of(job: JobForm, tasks: BaseTaskFormSet) -> JobSpec | None:
    """The JobSpec that was filled in; None, with the problems in the forms, where it is not one."""
    if not (job.is_valid() and tasks.is_valid()):
        return None
    try:
        return JobSpec.parse(document_of(job, tasks))
    except Invalid as error:
        show(error, job, tasks)
        return None


def show(error: HeklaError, job: JobForm, tasks: BaseTaskFormSet) -> None:
    """Put each problem beside the field it is about, also in the tasks."""
    problems = error.problems if isinstance(error, Invalid) else (Problem(getattr(error, "path", ""), error.message),)
    rest = []
    for problem in problems:
        match = _TASK_FIELD.match(problem.path)
        form = tasks.forms[int(match[1])] if match and int(match[1]) < len(tasks.forms) else None
        field = _field(problem.path, match[2]) if match else ""
        if form is not None and field in form.fields:
            form.add_error(field, problem.message)
        else:
            rest.append(problem)
    if rest:
        attach(job, Invalid(rest))


def _field(path: str, name: str) -> str:
    parts = path.split(".", 3)
    return _FIELD_OF_PATH.get(name, {}).get(parts[3] if len(parts) > 3 else "", name)  # noqa: PLR2004


class ManifestForm(forms.Form):
    """A job as YAML, typed or uploaded."""

    text = forms.CharField(
        label=gettext_lazy("Manifest"),
        required=False,
        strip=False,
        widget=forms.Textarea(attrs={"rows": 24, "class": "code-input", "spellcheck": "false"}),
        help_text=gettext_lazy("A Volcano Job (batch.volcano.sh/v1alpha1), at most 1 MiB."),
    )
    upload = forms.FileField(label=gettext_lazy("Or a file"), required=False)

    def clean(self) -> dict[str, Any]:
        """The text of whichever was given."""
        given = super().clean() or self.cleaned_data
        upload = given.get("upload")
        if upload is not None and upload.size > MAX_MANIFEST_BYTES:
            self.add_error("upload", _("The file has %.1f MiB; a manifest may have 1 MiB.") % (upload.size / 2**20))
        elif upload is not None:
            given["text"] = upload.read().decode(errors="replace")
        if not given.get("text") and not self.errors:
            self.add_error("text", _("Type a manifest, or choose a file."))
        return given
