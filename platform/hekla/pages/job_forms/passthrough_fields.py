"""Fields of a job without a form control: they pass through one hidden field of each form, unchanged.

Besides features that only manifests have, these are texts that a form control would change: browsers change line
endings, and a single-line control removes them. Hidden fields are not trusted: they are parsed as a JobSpec like all
other input.
"""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from hekla.domain.jobspec import JobSpec
from hekla.domain.policies import LifecycleEvent, LifecyclePolicy
from hekla.domain.task_spec import TaskSpec
from hekla.pages.job_forms import amounts, placement_lines, policy_fields
from hekla.pages.job_forms.placement_lines import GPU_MODEL

FIELD_OF_RESOURCE = {"cpu": "cpu", "memory": "memory", "nvidia.com/gpu": "gpus"}
FIELDS_OF_AUTOSCALING = ("max_replicas", "gpu_utilization")
Rest = dict[str, Any]
_JOB = {"min_success": int, "annotations": dict, "policies": list, "plugins": dict, "files": dict, "description": str,
    "volumes": list, "network_topology": dict, "min_resources": dict,
}  # fmt: skip
_UNCHANGED = ("min_success", "annotations", "volumes", "network_topology", "min_resources")
_TASK = {
    "policies": list, "max_retry": int, "node_selector": dict, "grace_seconds": int, "partition_size": int,
    "min_partitions": int, "partition_topology": dict, "topology_policy": str,
    "labels": dict, "annotations": dict, "tolerations": list, "affinity": dict, "topology_spread_constraints": list,
    "ports": dict, "resources": dict, "env": dict, "command": list, "image": str, "working_dir": str,
    "volume_mounts": list, "success_policy": str,
    "args": list, "host_ports": list, "pull_secrets": list, "runtime_class": str, "security_context": dict,
    "resource_claims": list, "autoscaling": dict,
}  # fmt: skip
_WORDS = {
    "min_success": gettext_lazy("minimum successes"),
    "annotations": gettext_lazy("annotations"),
    "policies": gettext_lazy("policies"),
    "plugins": gettext_lazy("plugins and their arguments"),
    "files": gettext_lazy("files"),
    "description": gettext_lazy("description"),
    "volumes": gettext_lazy("volumes"),
    "min_resources": gettext_lazy("resources for admission"),
    "volume_mounts": gettext_lazy("mounted volumes"),
    "max_retry": gettext_lazy("pod retries"),
    "labels": gettext_lazy("labels"),
    "node_selector": gettext_lazy("node selector"),
    "tolerations": gettext_lazy("tolerations"),
    "affinity": gettext_lazy("affinity"),
    "topology_spread_constraints": gettext_lazy("topology spread constraints"),
    "grace_seconds": gettext_lazy("grace period"),
    "partition_size": gettext_lazy("partitions"),
    "min_partitions": gettext_lazy("minimum of partitions"),
    "partition_topology": gettext_lazy("network topology of partitions"),
    "topology_policy": gettext_lazy("NUMA policy"),
    "success_policy": gettext_lazy("success policy"),
    "args": gettext_lazy("arguments of the image's command"),
    "ports": gettext_lazy("ports"),
    "host_ports": gettext_lazy("ports of the node"),
    "pull_secrets": gettext_lazy("image pull secrets"),
    "runtime_class": gettext_lazy("runtime class"),
    "resource_claims": gettext_lazy("claimed devices"),
    "security_context": gettext_lazy("security context"),
    "autoscaling": gettext_lazy("stabilization window of autoscaling"),
    "resources": gettext_lazy("resources"),
    "env": gettext_lazy("multi-line variables"),
    "command": gettext_lazy("line breaks in the command"),
    "image": gettext_lazy("image"),
    "working_dir": gettext_lazy("working folder"),
}


class RestField(forms.JSONField):
    """The hidden field: a JSON object with a fixed set of keys."""

    widget = forms.HiddenInput

    def __init__(self, types: Mapping[str, type], **kwargs: Any) -> None:  # noqa: ANN401
        super().__init__(required=False, **kwargs)
        self._types = types

    def to_python(self, value: object) -> Rest:  # type: ignore[override]
        """The passthrough values. Raises ValidationError for data that Hekla's forms cannot have sent."""
        try:
            found = super().to_python(value) or {}
        except (forms.ValidationError, RecursionError):
            found = None
        if not isinstance(found, dict) or not all(isinstance(v, self._types.get(k, ())) for k, v in found.items()):
            raise forms.ValidationError(_("Hidden form data was damaged. Submit the job as YAML."))
        return found

    def bound_data(self, data: object, initial: object) -> object:
        """The submitted data, even if it is not valid JSON."""
        try:
            return super().bound_data(data, initial)
        except RecursionError:
            return None


def job_field() -> RestField:
    """The hidden field of the job form."""
    return RestField(_JOB)


def task_field() -> RestField:
    """The hidden field of a task form."""
    return RestField(_TASK)


def of_job(spec: JobSpec) -> Rest:
    """The passthrough values of the job form."""
    document = spec.document()
    values = {
        "policies": document.get("policies", [])[_written(spec.policies, policy_fields.OF_JOB) :],
        "files": {name: text for name, text in spec.files.items() if not (is_line(name) and "\r" not in text)},
        "description": spec.description if "\r" in spec.description else "",
    }
    plugins = {name: list(arguments) for name, arguments in spec.plugins.items()}
    usual = merged_plugins({}, framework_of(plugins))
    return {
        **{name: document[name] for name in _UNCHANGED if name in document},
        **{name: value for name, value in values.items() if value},
        **({"plugins": plugins} if list(plugins.items()) != list(usual.items()) else {}),
    }


def of_task(task: TaskSpec) -> Rest:
    """The passthrough values of a task form."""
    document = task.model_dump(mode="json", exclude_defaults=True)
    values = {
        "resources": {
            name: amount
            for name, amount in task.resources.items()
            if not (name in FIELD_OF_RESOURCE and is_line(amount) and amounts.is_unchanged(name, amount))
        },
        "env": {name: text for name, text in task.env.items() if with_our_ends(text) != text or "\n" in text},
        "command": [*task.command] if any("\r" in word for word in task.command) else [],
        "autoscaling": {
            name: number
            for name, number in document.get("autoscaling", {}).items()
            if name not in FIELDS_OF_AUTOSCALING
        },
        **{name: text for name in ("image", "working_dir") if not is_line(text := getattr(task, name))},
        "node_selector": dict(task.node_selector),
        "tolerations": document.get("tolerations", []),
        "ports": dict(task.ports),
        "policies": document.get("policies", [])[_written(task.policies, policy_fields.OF_TASK) :],
    }
    values = {name: value for name, value in values.items() if name not in in_lines(task)}
    plain = (
        "min_partitions", "partition_topology", "topology_policy",
        "max_retry", "grace_seconds", "partition_size", "volume_mounts", "success_policy", "args",
        "labels", "annotations", "affinity", "topology_spread_constraints",
        "host_ports", "resource_claims", "pull_secrets", "runtime_class", "security_context",
    )  # fmt: skip
    return {name: document[name] for name in plain if name in document} | {n: v for n, v in values.items() if v}


def in_lines(task: TaskSpec) -> dict[str, str]:
    """The texts of the fields with one entry on each line, and the GPU model; without those that no text can hold."""
    tolerations = task.model_dump(mode="json", exclude_defaults=True).get("tolerations", [])
    labels = dict(task.node_selector)
    model = labels.pop(GPU_MODEL, "")
    texts = {
        "node_selector": placement_lines.write(labels, placement_lines.read_labels),
        "ports": placement_lines.write(task.ports, placement_lines.read_ports),
        "tolerations": placement_lines.write_tolerations(tolerations),
    }
    found = {name: text for name, text in texts.items() if text is not None}
    return found | ({"gpu_model": model} if model and "node_selector" in found else {})


def with_its_volumes(job: Rest, tasks: Sequence[Rest]) -> Rest:
    """The job document without passthrough volumes that no remaining task mounts: the form does not show them."""
    if "volumes" not in job:
        return job
    mounts = (mount for task in tasks for mount in task.get("volume_mounts", ()))
    names = [mount.get("name") for mount in mounts if isinstance(mount, dict)]
    mounted = [one for one in job["volumes"] if not isinstance(one, dict) or one.get("name") in names]
    return job | {"volumes": mounted}


def _written(found: Sequence[LifecyclePolicy], fields: Mapping[str, LifecycleEvent]) -> int:
    """How many of the first policies the choices of the form write."""
    return len(policy_fields.policies(policy_fields.chosen(found, fields), fields))


def framework_of(plugins: Mapping[str, Any]) -> str:
    """The plugin that the form shows as the framework: the first that is not one of `env`, `svc` and `ssh`."""
    return next((name for name in plugins if name not in ("env", "svc", "ssh")), "")


def merged_plugins(rest: Rest, framework: str) -> dict[str, Any]:
    """The passthrough plugins, with their framework replaced by this one."""
    carried = rest.get("plugins", {"env": [], "svc": []})
    if "plugins" in rest and framework_of(carried) == framework:
        return dict(carried)
    others = {name: arguments for name, arguments in carried.items() if name != framework_of(carried)}
    return others | ({framework: []} if framework else {})


def merged_command(rest: Rest, typed: str) -> list[str]:
    """The words of the command: the passthrough words if the typed text still equals them. Raises ValueError."""
    carried = [str(word) for word in rest.get("command", [])]
    if carried and with_our_ends(shlex.join(carried)) == with_our_ends(typed):
        return carried
    return shlex.split(with_our_ends(typed))


def with_our_ends(text: str) -> str:
    """The text with Unix line endings. Browsers send CRLF."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


def is_line(text: str) -> bool:
    """Whether a single-line control leaves the text unchanged."""
    return text == text.strip() and not {"\n", "\r"} & set(text)


def words(rest: Rest) -> Iterator[str]:
    """The labels of the passthrough fields. Unknown keys have none; validation refuses them."""
    yield from (str(_WORDS[name]) for name in rest if name in _WORDS)
