"""What the submission form begins with: an empty job, a preset of a framework, or a copy of a job."""

import shlex
from typing import Any

from hekla.domain.jobspec import JobSpec, TaskSpec

_PS_AND_WORKERS = [
    {"name": "ps", "replicas": 1, "command": "python train.py", "cpu": "500m", "memory": "512Mi"},
    {"name": "worker", "replicas": 2, "command": "python train.py", "cpu": "500m", "memory": "512Mi"},
]
_MASTER_AND_WORKERS = [
    {"name": "master", "replicas": 1, "command": "python train.py", "cpu": "500m", "memory": "512Mi"},
    {"name": "worker", "replicas": 1, "command": "python train.py", "cpu": "500m", "memory": "512Mi"},
]
PRESETS: dict[str, tuple[dict[str, Any], list[dict[str, Any]]]] = {
    "single": ({}, [{"name": "main", "replicas": 1, "command": "python -c 'print(\"hello\")'"}]),
    "tensorflow": ({"framework": "tensorflow", "restart": True}, _PS_AND_WORKERS),
    "pytorch": ({"framework": "pytorch", "restart": True}, _MASTER_AND_WORKERS),
}


def preset(name: str) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """First values of the job's form and of its tasks."""
    job, tasks = PRESETS.get(name, PRESETS["single"])
    return dict(job), [dict(task) for task in tasks]


def copy_of(spec: JobSpec) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The form as it would have to be filled in for this job."""
    first_file = next(iter(spec.files.items()), ("", ""))
    job = {
        "queue": spec.queue,
        "framework": next((name for name in ("tensorflow", "pytorch") if name in spec.plugins), ""),
        "min_available": spec.min_available,
        "priority": spec.priority,
        "restart": bool(spec.policies),
        "max_retry": spec.max_retry,
        "ttl_seconds_after_finished": spec.ttl_seconds_after_finished,
        "file_name": first_file[0],
        "file_text": first_file[1],
    }
    return job, [_task(task) for task in spec.tasks]


def fits_form(spec: JobSpec) -> bool:
    """Whether the form can show all of this job; else its YAML is offered."""
    job, tasks = copy_of(spec)
    simple_policies = [{"events": ("PodFailed", "PodEvicted"), "action": "RestartJob"}]
    policies = [{"events": tuple(map(str, p.events)), "action": str(p.action)} for p in spec.policies]
    return (
        len(spec.files) <= 1
        and policies in ([], simple_policies)
        and set(spec.plugins) <= {"env", "svc", "tensorflow", "pytorch"}
        and not any(spec.plugins.values())
        and spec.kind == "training"
        and spec.min_success is None
        and not any(t.policies or t.image or t.working_dir or t.node_selector or t.min_available for t in spec.tasks)
        and bool(job)
        and bool(tasks)
    )


def _task(task: TaskSpec) -> dict[str, Any]:
    return {
        "name": task.name,
        "replicas": task.replicas,
        "command": shlex.join(task.command),
        "cpu": task.resources.get("cpu", ""),
        "memory": task.resources.get("memory", ""),
        "gpus": task.resources.get("nvidia.com/gpu", ""),
        "environment": task.environment,
        "env": "\n".join(f"{name}={value}" for name, value in task.env.items()),
    }
