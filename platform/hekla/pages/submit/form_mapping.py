"""The submission form for an existing job: filled in so that it describes the same job."""

import shlex
from typing import Any

from hekla.domain.jobspec import JobSpec
from hekla.domain.task_spec import Iteration, TaskSpec
from hekla.pages.job_forms import git_code, network_closeness, passthrough_fields, policy_fields, volume_forms
from hekla.pages.job_forms.submission_form import InitialValues

DEBUGGING = "debugging"
_NUMBERS = (
    *("min_available", "priority", "max_retry"),
    *("active_deadline_seconds", "ttl_seconds_after_finished", "keep_failed_seconds"),
    *("idle_after_seconds", "idle_grace_seconds"),
)


def filled(spec: JobSpec) -> InitialValues:
    """Initial values with which the form describes this job."""
    spec, address, revision = git_code.split(spec)
    rest = passthrough_fields.of_job(spec)
    job = {
        "name": spec.name,
        "queue": spec.queue,
        "priority_class": spec.priority_class,
        "closeness": network_closeness.value_of(rest.get("network_topology")),
        "kind": spec.kind,
        "framework": passthrough_fields.framework_of(spec.plugins),
        **policy_fields.chosen(spec.policies, policy_fields.OF_JOB),
        "description": "" if "description" in rest else spec.description,
        "shape": shape_of(spec),
        "rest": rest,
        "git_address": address,
        "git_revision": revision,
        **{name: getattr(spec, name) for name in _NUMBERS},
    }
    files = [{"name": name, "text": text} for name, text in spec.files.items() if name not in rest.get("files", {})]
    tasks, volumes = [_task(task) for task in spec.tasks], volume_forms.rows_of(spec)
    if volumes:
        for each in (rest, *(task["rest"] for task in tasks)):
            for name in ("volumes", "volume_mounts"):
                each.pop(name, None)
    return InitialValues(job, tasks, files, volumes)


def shape_of(spec: JobSpec) -> str:
    """The kind of job, which selects the visible fields."""
    if spec.replicas > 1 or len(spec.tasks) > 1:
        return "distributed"
    return DEBUGGING if spec.kind == DEBUGGING else "single"


def _task(task: TaskSpec) -> dict[str, Any]:
    rest = passthrough_fields.of_task(task)
    amounts = {name: amount for name, amount in task.resources.items() if name not in rest.get("resources", {})}
    return {
        "name": task.name,
        "replicas": task.replicas,
        "min_available": task.min_available,
        "command": shlex.join(task.command),
        **{field: amounts.get(name, "") for name, field in passthrough_fields.FIELD_OF_RESOURCE.items()},
        "environment": task.environment,
        **{
            name: getattr(task.autoscaling, name) if task.autoscaling else None
            for name in passthrough_fields.FIELDS_OF_AUTOSCALING
        },
        **{name: "" if name in rest else getattr(task, name) for name in ("image", "working_dir")},
        "depends_on": ", ".join(task.depends_on.tasks) if task.depends_on else "",
        "depends_on_any": bool(task.depends_on and task.depends_on.iteration is Iteration.ANY),
        "env": "\n".join(f"{name}={text}" for name, text in task.env.items() if name not in rest.get("env", {})),
        **dict.fromkeys(("node_selector", "tolerations", "ports", "gpu_model"), ""),
        **passthrough_fields.in_lines(task),
        **policy_fields.chosen(task.policies, policy_fields.OF_TASK),
        "rest": rest,
    }
