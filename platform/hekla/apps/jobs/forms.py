"""The submission forms: a job, its tasks and its files as people fill them in; or a manifest."""

import re
import shlex
from collections.abc import Sequence
from typing import Any

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from hekla.domain.jobspec import Iteration
from hekla.domain.policies import RESTART_ON_LOSS

MAX_MANIFEST_BYTES = 1024 * 1024
MAX_TASK_ROWS = 50
MAX_FILE_ROWS = 32
FRAMEWORKS = [
    ("", gettext_lazy("None")),
    ("tensorflow", gettext_lazy("TensorFlow addresses (TF_CONFIG)")),
    ("pytorch", gettext_lazy("PyTorch addresses (MASTER_ADDR, RANK)")),
    ("mpi", gettext_lazy("MPI: mpirun in the master, ranks in the workers")),
    ("horovod", gettext_lazy("Horovod over MPI")),
    ("mxnet", gettext_lazy("MXNet roles (DMLC_ROLE)")),
    ("ray", gettext_lazy("Ray: a head and workers (RAY_ADDRESS)")),
    ("mindspore", gettext_lazy("MindSpore roles (MS_ROLE)")),
    ("paddle", gettext_lazy("PaddlePaddle trainers (PADDLE_TRAINER_ID)")),
    ("hcclrank", gettext_lazy("Numbers among Ascend devices (RANK)")),
    ("jax", gettext_lazy("JAX: equals that meet at the first (COORDINATOR_ADDRESS)")),
    ("xgboost", gettext_lazy("XGBoost: a master and workers (MASTER_ADDR, RANK)")),
    ("indexed", gettext_lazy("A number for each pod (JOB_COMPLETION_INDEX)")),
    ("openpai", gettext_lazy("OpenPAI addresses and ports (PAI_HOST_IP_…)")),
]
_DEVICE = "nvidia.com/gpu"


def _code(rows: int) -> forms.Textarea:
    return forms.Textarea(attrs={"rows": rows, "class": "code-input", "spellcheck": "false"})


class JobForm(forms.Form):
    """What is about the job as a whole."""

    name = forms.CharField(
        label=gettext_lazy("Name"), max_length=60, help_text=gettext_lazy("Small letters, digits, hyphens.")
    )
    queue = forms.ChoiceField(label=gettext_lazy("Queue"))
    framework = forms.ChoiceField(label=gettext_lazy("Framework"), choices=FRAMEWORKS, required=False)
    kind = forms.CharField(label=gettext_lazy("Kind"), max_length=32, initial="training", required=False)
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
    active_deadline_seconds = forms.IntegerField(
        label=gettext_lazy("Run at most"),
        required=False,
        min_value=1,
        help_text=gettext_lazy(
            "Counted from its start, restarts among it; then it has failed. Empty: as long as it takes."
        ),
    )
    ttl_seconds_after_finished = forms.IntegerField(
        label=gettext_lazy("Delete after"),
        required=False,
        min_value=0,
        help_text=gettext_lazy("Counted from its end. Empty: it stays."),
    )

    def __init__(self, *args: Any, queues: Sequence[tuple[str, str]], **kwargs: Any) -> None:  # noqa: ANN401
        super().__init__(*args, **kwargs)
        self.fields["queue"].choices = queues  # type: ignore[attr-defined]

    def document(self) -> dict[str, Any]:
        """As the fields of a JobSpec document that are about the whole job."""
        given = self.cleaned_data
        numbers = (
            "min_available",
            "priority",
            "max_retry",
            "active_deadline_seconds",
            "ttl_seconds_after_finished",
        )
        return {
            "name": given["name"],
            "queue": given["queue"],
            "plugins": {"env": [], "svc": []} | ({given["framework"]: []} if given["framework"] else {}),
            "policies": [policy.model_dump(mode="json") for policy in RESTART_ON_LOSS] if given["restart"] else [],
            **({"kind": given["kind"]} if given["kind"] else {}),
            **{name: given[name] for name in numbers if given[name] is not None},
        }


class TaskForm(forms.Form):
    """One task (role)."""

    name = forms.CharField(label=gettext_lazy("Role"), max_length=63)
    replicas = forms.IntegerField(label=gettext_lazy("Replicas"), min_value=0, initial=1)
    min_available = forms.IntegerField(label=gettext_lazy("At least"), min_value=0, required=False)
    command = forms.CharField(
        label=gettext_lazy("Command"),
        widget=_code(2),
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
        widget=_code(2),
        help_text=gettext_lazy("One NAME=value a line."),
    )
    depends_on = forms.CharField(
        label=gettext_lazy("Begins after"),
        required=False,
        max_length=2000,
        help_text=gettext_lazy("Roles that must be at work or done before, with commas between. Empty: with the job."),
    )
    depends_on_any = forms.BooleanField(label=gettext_lazy("One of these roles is enough"), required=False)

    def __init__(self, *args: Any, environments: Sequence[str] = (), **kwargs: Any) -> None:  # noqa: ANN401
        super().__init__(*args, **kwargs)
        choices = [("", gettext_lazy("The console's own")), *((name, name) for name in environments)]
        self.fields["environment"].choices = choices  # type: ignore[attr-defined]

    def clean_command(self) -> list[str]:
        """The words of the command line."""
        try:
            return shlex.split(self.cleaned_data["command"])
        except ValueError as error:
            raise forms.ValidationError(_("This is not a whole command line: a quotation mark is open.")) from error

    def clean_env(self) -> dict[str, str]:
        """Names and values."""
        lines = [line for line in self.cleaned_data["env"].splitlines() if line.strip()]
        wrong = [line for line in lines if "=" not in line]
        if wrong:
            raise forms.ValidationError(_("“%s” is not of the form NAME=value.") % wrong[0][:60])
        return dict(line.split("=", 1) for line in lines)

    def clean_depends_on(self) -> list[str]:
        """The names of the roles."""
        return re.findall(r"[^\s,，]+", self.cleaned_data["depends_on"])

    def document(self) -> dict[str, Any]:
        """As a task of a JobSpec document."""
        given = self.cleaned_data
        amounts = {"cpu": given["cpu"], "memory": given["memory"], _DEVICE: given["gpus"]}
        return {
            "name": given["name"],
            "replicas": given["replicas"],
            "min_available": given["min_available"],
            "command": given["command"],
            "resources": {name: amount.strip() for name, amount in amounts.items() if amount.strip()},
            "env": given["env"],
            "environment": given["environment"],
            "depends_on": self._dependency(),
        }

    def _dependency(self) -> dict[str, Any] | None:
        given = self.cleaned_data
        iteration = str(Iteration.ANY if given["depends_on_any"] else Iteration.ALL)
        return {"tasks": given["depends_on"], "iteration": iteration} if given["depends_on"] else None


class FileForm(forms.Form):
    """A file that every pod finds in its working folder. A row that is empty counts as absent."""

    name = forms.CharField(label=gettext_lazy("Name"), required=False, max_length=255)
    text = forms.CharField(label=gettext_lazy("Text"), required=False, strip=False, widget=_code(10))

    def clean(self) -> dict[str, Any]:
        """A text needs a name; its lines end as they do on the machines where it is used."""
        given = super().clean() or self.cleaned_data
        if given.get("text") and not given.get("name"):
            self.add_error("name", _("Say what this file is called, for example train.py."))
        return given | {"text": given.get("text", "").replace("\r\n", "\n")}


TaskFormSet = forms.formset_factory(
    TaskForm, extra=0, min_num=1, max_num=MAX_TASK_ROWS, validate_min=True, validate_max=True
)
FileFormSet = forms.formset_factory(FileForm, extra=0, min_num=0, max_num=MAX_FILE_ROWS, validate_max=True)


class ManifestForm(forms.Form):
    """A job as YAML, typed or uploaded."""

    text = forms.CharField(
        label=gettext_lazy("Manifest"),
        required=False,
        strip=False,
        widget=_code(24),
        help_text=gettext_lazy("A job manifest of Volcano, Kubeflow, Kubernetes or OpenPAI, at most 1 MiB."),
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


class LogSearchForm(forms.Form):
    """What to look for in a log, and from where on."""

    q = forms.CharField(label=gettext_lazy("Search in the whole log"), max_length=200, strip=False)
    ignore_case = forms.BooleanField(label=gettext_lazy("Ignore case"), required=False)
    offset = forms.IntegerField(min_value=0, max_value=2**62, required=False)
    line = forms.IntegerField(min_value=1, max_value=2**62, required=False)

    def clean_q(self) -> str:
        """A line cannot hold a line break, nor text a zero."""
        text: str = self.cleaned_data["q"]
        if "\n" in text:
            raise forms.ValidationError(_("Search for something that stands in one line."))
        return text
