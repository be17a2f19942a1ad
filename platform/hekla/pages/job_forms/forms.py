"""The submission forms: a job with its tasks and files, or a manifest."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from hekla.domain import frameworks
from hekla.domain.errors import Invalid
from hekla.domain.task_spec import MAX_REPLICAS, Iteration
from hekla.pages.frame.durations import DurationField
from hekla.pages.job_forms import (
    drafts,
    git_code,
    network_closeness,
    passthrough_fields,
    placement_lines,
    policy_fields,
    secret_texts,
)
from hekla.pages.job_forms.amounts import AmountField
from hekla.pages.job_forms.placement_lines import GPU_MODEL

MAX_TASK_ROWS = 50
MAX_FILE_ROWS = 32
FRAMEWORKS = [
    ("", gettext_lazy("None")),
    ("tensorflow", gettext_lazy("TensorFlow addresses (TF_CONFIG)")),
    ("pytorch", gettext_lazy("PyTorch addresses (MASTER_ADDR, RANK)")),
    ("mpi", gettext_lazy("MPI: mpirun in the master, ranks in the workers")),
    ("horovod", gettext_lazy("Horovod over MPI")),
    ("mxnet", gettext_lazy("MXNet roles (DMLC_ROLE)")),
    ("ray", gettext_lazy("Ray: head and workers (RAY_ADDRESS)")),
    ("spark", gettext_lazy("Spark: driver and executors (MASTER)")),
    ("flink", gettext_lazy("Flink: job manager and task managers (JOB_MANAGER_RPC_ADDRESS)")),
    ("mindspore", gettext_lazy("MindSpore roles (MS_ROLE)")),
    ("paddle", gettext_lazy("PaddlePaddle trainers (PADDLE_TRAINER_ID)")),
    ("hcclrank", gettext_lazy("Ascend device ranks (RANK)")),
    ("jax", gettext_lazy("JAX: peer processes (COORDINATOR_ADDRESS)")),
    ("xgboost", gettext_lazy("XGBoost: master and workers (MASTER_ADDR, RANK)")),
    ("indexed", gettext_lazy("A number for each pod (JOB_COMPLETION_INDEX)")),
    ("openpai", gettext_lazy("OpenPAI addresses and ports (PAI_HOST_IP_…)")),
]
_TIMES = (
    *policy_fields.OF_JOB, "min_available", "priority", "priority_class", "closeness", "max_retry",
    "ttl_seconds_after_finished", "keep_failed_seconds", "idle_after_seconds", "idle_grace_seconds",
)  # fmt: skip
_WORDS = ("description", "secrets", "kind", "framework")
_NO_FRAMEWORKS = {"env", "svc", "ssh"}
_FIRST_SHAPES = [
    ("single", gettext_lazy("Single process")),
    ("distributed", gettext_lazy("Distributed training")),
    ("debugging", gettext_lazy("Debugging")),
    ("sweep", gettext_lazy("Parameter sweep")),
]


def code_input(rows: int) -> forms.Textarea:
    """A text area for code."""
    return forms.Textarea(attrs={"rows": rows, "class": "code-input", "spellcheck": "false"})


class SecretsField(forms.CharField):
    """Secrets that commands refer to. They are stored separately from the job, and never shown after submission."""

    def __init__(self, **kwargs: Any) -> None:  # noqa: ANN401
        kwargs.setdefault("label", gettext_lazy("Secrets"))
        kwargs.setdefault(
            "help_text", gettext_lazy("One “name: value” per line. Secrets are stored separately and never shown.")
        )
        super().__init__(required=False, strip=False, widget=code_input(3), **kwargs)

    def clean(self, value: str | None) -> dict[str, str]:
        """The secrets by name."""
        try:
            return secret_texts.read(super().clean(value) or "")
        except Invalid as error:
            raise forms.ValidationError([problem.message for problem in error.problems]) from error


Choices = Sequence[tuple[str, str]]


class JobForm(forms.Form):
    """The fields of the job as a whole. `shape` only selects the fields that are visible at first."""

    name = forms.CharField(
        label=gettext_lazy("Name"), max_length=60, help_text=gettext_lazy("Lowercase letters, digits, hyphens.")
    )
    queue = forms.ChoiceField(label=gettext_lazy("Queue"))
    framework = forms.ChoiceField(label=gettext_lazy("Framework"), choices=FRAMEWORKS, required=False)
    kind = forms.CharField(label=gettext_lazy("Kind"), max_length=32, initial="training", required=False)
    min_available = forms.IntegerField(
        label=gettext_lazy("Minimum pods"),
        required=False,
        min_value=1,
        help_text=gettext_lazy("At least this many pods start together, or none. Leave empty for all pods."),
    )
    priority = forms.IntegerField(label=gettext_lazy("Priority"), initial=0, required=False)
    priority_class = forms.ChoiceField(label=gettext_lazy("Priority class"), required=False)
    closeness = forms.ChoiceField(label=gettext_lazy("Closeness in the network"), required=False)
    on_failure = policy_fields.job_field("on_failure")
    on_eviction = policy_fields.job_field("on_eviction")
    max_retry = forms.IntegerField(label=gettext_lazy("Maximum restarts"), min_value=1, initial=3, required=False)
    active_deadline_seconds = DurationField(
        label=gettext_lazy("Maximum run time"),
        required=False,
        minimum=1,
        help_text=gettext_lazy(
            "Counted from the start, including restarts. At the limit the job fails. Leave empty for no limit."
        ),
    )
    ttl_seconds_after_finished = DurationField(
        label=gettext_lazy("Delete after"),
        required=False,
        minimum=0,
        help_text=gettext_lazy("Counted from the end of the job. Leave empty to keep the job."),
    )
    keep_failed_seconds = DurationField(
        label=gettext_lazy("Keep failed pods for"),
        required=False,
        minimum=60,
        help_text=gettext_lazy(
            "At most 7d. If the job ends with a failed pod, open its files and environment where it failed. "
            "They are then deleted."
        ),
    )
    idle_after_seconds = DurationField(
        label=gettext_lazy("Warn when idle for"),
        required=False,
        minimum=600,
        help_text=gettext_lazy("10m to 12h. Sessions with its pods, and the job if its GPUs are idle."),
    )
    idle_grace_seconds = DurationField(
        label=gettext_lazy("End after the warning"),
        required=False,
        minimum=300,
        help_text=gettext_lazy("5m to 10h. Sessions then end, and the job is aborted."),
    )

    description = forms.CharField(
        label=gettext_lazy("Description"),
        required=False,
        strip=False,
        max_length=2000,
        widget=forms.Textarea({"rows": 2}),
    )
    secrets = SecretsField()
    git_address = git_code.address_field()
    git_revision = git_code.revision_field()
    shape = forms.ChoiceField(choices=_FIRST_SHAPES, required=False, widget=forms.HiddenInput)
    rest = passthrough_fields.job_field()

    def __init__(
        self,
        *args: Any,  # noqa: ANN401
        queues: Choices,
        classes: Choices = (),
        tiers: Iterable[str] = (),
        **kwargs: Any,  # noqa: ANN401
    ) -> None:
        super().__init__(*args, **kwargs)
        listed = {name for name, _label in FRAMEWORKS} | _NO_FRAMEWORKS
        own = [(name, name) for name in frameworks.load_frameworks() if name not in listed]
        self.fields["framework"].choices = [*FRAMEWORKS, *own]  # type: ignore[attr-defined]
        _offer(self, "queue", queues, gettext_lazy("%s (not available to this tenant)"))
        usual = ("", gettext_lazy("by priority number"))
        _offer(self, "priority_class", [usual, *classes], gettext_lazy("%s (not available to this tenant)"))
        _offer(self, "closeness", network_closeness.choices(tiers), network_closeness.OTHER)

    @property
    def times_matter(self) -> bool:
        """Whether a field about start, restarts or clean-up has a non-default value or an error."""
        return _says(self, _TIMES if self["shape"].value() == "debugging" else (*_TIMES, "active_deadline_seconds"))

    @property
    def words_matter(self) -> bool:
        """Whether a hidden field about description, kind, framework or secrets has a non-default value or an error."""
        shape = self["shape"].value()
        visible = {"debugging": {"kind"}, "distributed": {"framework"}, "sweep": {"framework"}}.get(shape, set())
        return _says(self, [name for name in _WORDS if name not in visible])

    @property
    def code_matters(self) -> bool:
        """Whether a field about code from elsewhere has a value or an error."""
        return _says(self, ("git_address", "git_revision"))

    def document(self) -> dict[str, Any]:
        """The job-level fields of a JobSpec document."""
        cleaned = drafts.completed(self)
        numbers = (
            "min_available",
            "priority",
            "max_retry",
            *("active_deadline_seconds", "ttl_seconds_after_finished", "keep_failed_seconds"),
            *("idle_after_seconds", "idle_grace_seconds"),
        )
        rest = cleaned["rest"]
        policies = policy_fields.documents(cleaned, policy_fields.OF_JOB)
        return {
            **rest,
            "name": cleaned["name"],
            "queue": cleaned["queue"],
            "priority_class": cleaned["priority_class"],
            "network_topology": network_closeness.chosen(cleaned["closeness"], rest.get("network_topology")),
            "plugins": passthrough_fields.merged_plugins(rest, cleaned["framework"]),
            "policies": [*policies, *rest.get("policies", [])],
            "description": passthrough_fields.with_our_ends(cleaned["description"]) or rest.get("description", ""),
            **({"kind": cleaned["kind"]} if cleaned["kind"] else {}),
            **{name: cleaned[name] for name in numbers if cleaned[name] is not None},
        }


class TaskForm(forms.Form):
    """One task (role)."""

    name = forms.CharField(label=gettext_lazy("Role"), max_length=63)
    replicas = forms.IntegerField(label=gettext_lazy("Replicas"), min_value=0, initial=1)
    min_available = forms.IntegerField(label=gettext_lazy("Minimum"), min_value=0, required=False)
    command = forms.CharField(
        label=gettext_lazy("Command"),
        required=False,
        widget=code_input(2),
        help_text=gettext_lazy(
            "A program and its arguments, for example: python train.py --epochs 10. For a shell: sh -c '…'. "
            "With an image, leave empty to run the image's own command."
        ),
    )
    cpu = AmountField("cpu", label=gettext_lazy("CPU"), initial="1")
    memory = AmountField("memory", label=gettext_lazy("Memory"), initial="512Mi")
    gpus = AmountField("nvidia.com/gpu", label=gettext_lazy("GPUs"))
    environment = forms.ChoiceField(label=gettext_lazy("Environment"), required=False)
    env = forms.CharField(
        label=gettext_lazy("Variables"),
        required=False,
        strip=False,
        widget=code_input(2),
        help_text=gettext_lazy("One NAME=value per line."),
    )
    depends_on = forms.CharField(
        label=gettext_lazy("Depends on"),
        required=False,
        max_length=4000,
        help_text=gettext_lazy(
            "Roles that must run or be finished first, separated by commas. Leave empty to start with the job."
        ),
    )
    depends_on_any = forms.BooleanField(label=gettext_lazy("Any one of these roles is enough"), required=False)
    image = forms.CharField(
        label=gettext_lazy("Image"),
        required=False,
        max_length=512,
        help_text=gettext_lazy(
            "For clusters that run containers. Clusters whose pods are processes ignore it. Empty: the cluster's image."
        ),
    )
    working_dir = forms.CharField(label=gettext_lazy("Working folder"), required=False, max_length=1024)
    max_replicas = forms.IntegerField(
        label=gettext_lazy("Maximum replicas"), min_value=1, max_value=MAX_REPLICAS, required=False
    )
    gpu_utilization = forms.IntegerField(
        label=gettext_lazy("Target GPU utilization"),
        min_value=1,
        max_value=100,
        required=False,
        help_text=gettext_lazy(
            "In percent, for example 70. With a target, the task grows while its GPUs are busier, at most to the "
            "maximum, and shrinks while they are less busy, at least to its minimum."
        ),
    )
    gpu_model = forms.ChoiceField(label=gettext_lazy("GPU model"), required=False)
    node_selector = placement_lines.node_labels_field()
    tolerations = placement_lines.tolerations_field()
    ports = placement_lines.ports_field()
    on_failure = policy_fields.task_field("on_failure")
    on_eviction = policy_fields.task_field("on_eviction")
    on_completion = policy_fields.task_field("on_completion")
    rest = passthrough_fields.task_field()

    def __init__(
        self,
        *args: Any,  # noqa: ANN401
        environments: Sequence[str] = (),
        gpu_models: Sequence[str] = (),
        needs_command: bool = True,
        **kwargs: Any,  # noqa: ANN401
    ) -> None:
        super().__init__(*args, **kwargs)
        self.fields["command"].required = needs_command and not self["image"].value()
        choices = [("", gettext_lazy("Console default")), *((name, name) for name in environments)]
        _offer(self, "environment", choices, gettext_lazy("%s (deleted)"))
        models = [("", gettext_lazy("Any")), *((model, model) for model in gpu_models)]
        _offer(self, "gpu_model", models, gettext_lazy("%s (on no node)"))

    @property
    def opens(self) -> bool:
        """Whether an optional field has a non-default value or an error, so that its section must be open."""
        fields = (
            "env", "image", "working_dir", "min_available", "depends_on", "max_replicas", "gpu_utilization",
            "node_selector", "tolerations", "ports", *policy_fields.OF_TASK,
        )  # fmt: skip
        return _says(self, fields) or bool({"name", "replicas"} & set(self.errors))

    def clean_env(self) -> dict[str, str]:
        """The variables by name."""
        lines = [
            line for line in passthrough_fields.with_our_ends(self.cleaned_data["env"]).split("\n") if line.strip()
        ]
        wrong = [line for line in lines if "=" not in line]
        if wrong:
            raise forms.ValidationError(_("“%s” is not of the form NAME=value.") % wrong[0][:60])
        pairs = [(name.strip(), value) for name, _equals, value in (line.partition("=") for line in lines)]
        _refuse_repeated(name for name, _value in pairs)
        return dict(pairs)

    def clean_depends_on(self) -> list[str]:
        """The names of the tasks to wait for."""
        return re.findall(r"[^\s,，]+", self.cleaned_data["depends_on"])

    def clean(self) -> dict[str, Any]:
        """The cleaned data, with the command split into words; words that the page cannot show are kept."""
        cleaned = super().clean() or self.cleaned_data
        if cleaned.get("gpu_model") and GPU_MODEL in (cleaned.get("node_selector") or {}):
            self.add_error("node_selector", _("The GPU model is set twice: here and in its own field."))
        try:
            return cleaned | {
                "command": passthrough_fields.merged_command(cleaned.get("rest", {}), cleaned.get("command", ""))
            }
        except ValueError:
            self.add_error("command", _("Incomplete command line: a quotation mark is not closed."))
            return cleaned

    def document(self) -> dict[str, Any]:
        """A task of a JobSpec document. Without a command, the framework or the image provides it."""
        cleaned = drafts.completed(self)
        rest = cleaned["rest"]
        typed = {name: cleaned[field] for name, field in passthrough_fields.FIELD_OF_RESOURCE.items() if cleaned[field]}
        optional = {name: cleaned[name] or rest.get(name) for name in ("command", "image", "working_dir")}
        return {
            **{name: value for name, value in rest.items() if name != "args" or not optional["command"]},
            **{name: value for name, value in optional.items() if value},
            "name": cleaned["name"],
            "replicas": cleaned["replicas"],
            "min_available": cleaned["min_available"],
            "resources": rest.get("resources", {}) | typed,
            "env": rest.get("env", {}) | cleaned["env"],
            "environment": cleaned["environment"],
            "node_selector": rest.get("node_selector", {}) | cleaned["node_selector"] | _gpu_model(cleaned),
            "tolerations": [*rest.get("tolerations", []), *cleaned["tolerations"]],
            "ports": rest.get("ports", {}) | cleaned["ports"],
            "depends_on": _dependency(cleaned),
            "autoscaling": _autoscaling(cleaned),
            "policies": [*policy_fields.documents(cleaned, policy_fields.OF_TASK), *rest.get("policies", [])],
        }


def _autoscaling(cleaned: dict[str, Any]) -> dict[str, Any] | None:
    """With one of its fields the rest is required. Without both, the fields that the form does not show go too."""
    names = passthrough_fields.FIELDS_OF_AUTOSCALING
    typed = {name: number for name in names if (number := cleaned[name]) is not None}
    return cleaned["rest"].get("autoscaling", {}) | typed if typed else None


def _gpu_model(cleaned: dict[str, Any]) -> dict[str, str]:
    return {GPU_MODEL: cleaned["gpu_model"]} if cleaned["gpu_model"] else {}


def _dependency(cleaned: dict[str, Any]) -> dict[str, Any] | None:
    iteration = str(Iteration.ANY if cleaned["depends_on_any"] else Iteration.ALL)
    return {"tasks": cleaned["depends_on"], "iteration": iteration} if cleaned["depends_on"] else None


class JobFileForm(forms.Form):
    """A file in the working folder of every pod. An empty row counts as absent."""

    name = forms.CharField(label=gettext_lazy("Name"), required=False, max_length=255)
    text = forms.CharField(label=gettext_lazy("Text"), required=False, strip=False, widget=code_input(10))

    def clean(self) -> dict[str, Any]:
        """The file, with line endings as in Unix. Text without a name is an error."""
        cleaned = super().clean() or self.cleaned_data
        if cleaned.get("text") and not cleaned.get("name"):
            self.add_error("name", _("Enter a file name, for example train.py."))
        return cleaned | {"text": passthrough_fields.with_our_ends(cleaned.get("text", ""))}


class UniqueNames(forms.BaseFormSet):
    """Files with distinct names."""

    def clean(self) -> None:
        """Report a duplicate name at the second file."""
        names = set()
        for form in self.forms:
            name = form.cleaned_data.get("name")
            if name and name in names:
                form.add_error("name", _("“%s” is set twice.") % name)
            names.add(name)


class TaskRows(forms.BaseFormSet):
    """The tasks of a job."""

    @property
    def offered(self) -> str:
        """What its rows offer: two forms with the same choices have the same empty row."""
        return repr(sorted((name, value) for name, value in self.form_kwargs.items()))


# `absolute_max`: by default Django makes up to 1,000 rows more, because a request says so, before it refuses them.
TaskFormSet = forms.formset_factory(
    TaskForm,
    formset=TaskRows,
    extra=0,
    min_num=1,
    max_num=MAX_TASK_ROWS,
    absolute_max=MAX_TASK_ROWS,
    validate_min=True,
    validate_max=True,
)
FileFormSet = forms.formset_factory(
    JobFileForm,
    formset=UniqueNames,
    extra=0,
    min_num=0,
    max_num=MAX_FILE_ROWS,
    absolute_max=MAX_FILE_ROWS,
    validate_max=True,
)


def _offer(form: forms.Form, field: str, choices: Sequence[tuple[str, Any]], word: Any) -> None:  # noqa: ANN401
    """Offer these choices, and keep an unavailable current value as a choice: the browser would silently select
    another.
    """
    value = form[field].value() or ""
    known = not value or any(name == value for name, _label in choices)
    form.fields[field].choices = choices if known else [*choices, (value, word % value)]  # type: ignore[attr-defined]


def _says(form: forms.Form, fields: Iterable[str]) -> bool:
    """Whether one of these fields has an error or a non-default value."""
    return any(name in form.errors or _word(form[name].value()) != _word(form.fields[name].initial) for name in fields)


def _word(value: object) -> str:
    """The value as text; empty for empty values and for zero."""
    return "" if value == "0" else str(value or "")


def _refuse_repeated(names: Iterable[str]) -> None:
    known: set[str] = set()
    for name in names:
        if name in known:
            raise forms.ValidationError(_("“%s” is set twice.") % name[:60])
        known.add(name)


class PresetForm(forms.Form):
    """The name of a new preset of the job. Its fields belong to the job's form in HTML."""

    name = forms.CharField(
        label=gettext_lazy("Name"), max_length=60, required=False, widget=forms.TextInput({"form": "submission"})
    )
    for_tenant = forms.BooleanField(
        label=gettext_lazy("Share with the tenant"),
        required=False,
        widget=forms.CheckboxInput({"form": "submission"}),
    )

    def __init__(self, data: Mapping[str, Any] | None = None) -> None:
        super().__init__(data, prefix="preset")


class LogSearchForm(forms.Form):
    """The text to search for in a log, and the position to start at."""

    q = forms.CharField(label=gettext_lazy("Search the whole log"), max_length=200, strip=False)
    ignore_case = forms.BooleanField(label=gettext_lazy("Ignore case"), required=False)
    offset = forms.IntegerField(min_value=0, max_value=2**62, required=False)
    line = forms.IntegerField(min_value=1, max_value=2**62, required=False)

    def clean_q(self) -> str:
        """The text, without line breaks: a search covers single lines only. (CharField refuses null characters.)"""
        text: str = self.cleaned_data["q"]
        if "\n" in text:
            raise forms.ValidationError(_("Enter text to search for within one line."))
        return text
