"""What the submission form begins with: an empty job, a preset of a framework, or a copy of a job."""

import shlex
from typing import Any

from hekla.apps.jobs.forms import FRAMEWORKS
from hekla.apps.jobs.submission_form import First
from hekla.domain.jobspec import Iteration, JobSpec, TaskSpec
from hekla.domain.policies import RESTART_ON_LOSS

_PYTHON = {"command": "python train.py", "cpu": "500m", "memory": "512Mi"}
_HELLO = 'python -c "print(1 + 1)"'
PRESETS = {
    "single": First({}, [{"name": "main", "replicas": 1, "command": _HELLO, "cpu": "1", "memory": "256Mi"}]),
    "tensorflow": First(
        {"framework": "tensorflow", "restart": True},
        [{"name": "ps", "replicas": 1} | _PYTHON, {"name": "worker", "replicas": 2} | _PYTHON],
        [{"name": "train.py", "text": "import os\nprint(os.environ['TF_CONFIG'])\n"}],
    ),
    "pytorch": First(
        {"framework": "pytorch", "restart": True},
        [{"name": "master", "replicas": 1} | _PYTHON, {"name": "worker", "replicas": 1} | _PYTHON],
        [{"name": "train.py", "text": "import os\nprint(os.environ['RANK'], 'of', os.environ['WORLD_SIZE'])\n"}],
    ),
}


def preset(name: str) -> First:
    """First values for a framework; a single process where there is no such preset."""
    found = PRESETS.get(name, PRESETS["single"])
    return First(found.job, found.tasks, found.files)


def copy_of(spec: JobSpec) -> First:
    """The form as it would have to be filled in for this job."""
    job = {
        "queue": spec.queue,
        "kind": spec.kind,
        "framework": next((name for name in _FRAMEWORKS if name in spec.plugins), ""),
        "min_available": spec.min_available,
        "priority": spec.priority,
        "restart": bool(spec.policies),
        "max_retry": spec.max_retry,
        "active_deadline_seconds": spec.active_deadline_seconds,
        "ttl_seconds_after_finished": spec.ttl_seconds_after_finished,
    }
    files = [{"name": name, "text": text} for name, text in spec.files.items()]
    return First(job, [_task(task) for task in spec.tasks], files)


def fits_form(spec: JobSpec) -> bool:
    """Whether the form can show all of this job; else its YAML is offered."""
    plain_tasks = not any(
        set(task.model_dump(exclude_defaults=True)) - _SHOWN or set(task.resources) - _RESOURCES for task in spec.tasks
    )
    return (
        plain_tasks
        and spec.policies in ((), RESTART_ON_LOSS)
        and set(spec.plugins) <= {"env", "svc", *_FRAMEWORKS}
        and len(_FRAMEWORKS & set(spec.plugins)) <= 1
        and not any(spec.plugins.values())
        and not spec.description
        and spec.min_success is None
    )


_FRAMEWORKS = {name for name, _ in FRAMEWORKS if name}
_RESOURCES = {"cpu", "memory", "nvidia.com/gpu"}
_SHOWN = {"name", "replicas", "min_available", "command", "resources", "env", "environment", "depends_on"}


def _task(task: TaskSpec) -> dict[str, Any]:
    return {
        "name": task.name,
        "replicas": task.replicas,
        "min_available": task.min_available,
        "command": shlex.join(task.command),
        "cpu": task.resources.get("cpu", ""),
        "memory": task.resources.get("memory", ""),
        "gpus": task.resources.get("nvidia.com/gpu", ""),
        "environment": task.environment,
        "depends_on": ", ".join(task.depends_on.tasks) if task.depends_on else "",
        "depends_on_any": bool(task.depends_on and task.depends_on.iteration is Iteration.ANY),
        "env": "\n".join(f"{name}={value}" for name, value in task.env.items()),
    }
