"""Writes jobs as JobConfigs. Facts without a field are left out, and found by reading the result back."""

import math
import shlex
from typing import Any

from hekla.domain.errors import Invalid, Problem
from hekla.domain.formats.openpai import completion, extras, names
from hekla.domain.formats.openpai.completion import CompletionPlan, RoleCompletion
from hekla.domain.formats.openpai.request import SHELL
from hekla.domain.formats.writing import without_empty
from hekla.domain.frameworks import openpai as plugin
from hekla.domain.frameworks.registry import load_frameworks
from hekla.domain.jobspec import JobSpec
from hekla.domain.task_spec import TaskSpec
from hekla.domain.translation import translate

_MiB = 2**20


class _Writing:
    """A job, with its names in OpenPAI."""

    def __init__(self, spec: JobSpec) -> None:
        options = load_frameworks()["openpai"].read(spec.plugins.get("openpai", ()))[0]
        has_plugin = "openpai" in spec.plugins
        self.spec = spec
        self.name = str(options["name"]) or spec.name
        self.roles = plugin.roles_of(spec.tasks, options) if has_plugin else _roles(spec)
        self.plan: CompletionPlan = completion.plan_of(spec, self.roles, has_plugin=has_plugin)
        self.images = list(dict.fromkeys(task.image for task in spec.tasks))

    def ends(self, task: TaskSpec) -> RoleCompletion:
        """When the task ends the job."""
        return self.plan.roles[task.name]

    def image(self, task: TaskSpec) -> str:
        """The name of the task's image among the prerequisites."""
        return f"image_{self.images.index(task.image)}"


def _roles(spec: JobSpec) -> dict[str, plugin.TaskRole]:
    return {task.name: plugin.TaskRole(names.identifier(task.name)) for task in spec.tasks}


def version_2(spec: JobSpec) -> dict[str, Any]:
    """The job as a JobConfig of protocol version 2."""
    job = _Writing(spec)
    images = [
        {"protocolVersion": 2, "type": "dockerimage", "name": f"image_{number}", "uri": uri}
        for number, uri in enumerate(job.images)
    ]
    priority = extras.priority_class(spec.priority) if spec.priority else None
    return without_empty(
        protocolVersion=2,
        name=job.name,
        type="job",
        description=spec.description or None,
        jobRetryCount=job.plan.retries or None,
        prerequisites=images,
        taskRoles={job.roles[task.name].name: _role(job, task) for task in spec.tasks},
        defaults={"virtualCluster": spec.queue},
        extras=without_empty(
            gangAllocation=None if job.plan.is_gang else False,
            hivedScheduler=without_empty(jobPriorityClass=priority),
        ),
    )


def _role(job: _Writing, task: TaskSpec) -> dict[str, Any]:
    role, ends = job.roles[task.name], job.ends(task)
    return without_empty(
        instances=task.replicas,
        completion={"minFailedInstances": ends.failed, "minSucceededInstances": ends.succeeded},
        taskRetryCount=ends.retries or None,
        dockerImage=job.image(task),
        resourcePerInstance={**_amounts(task, "cpu", "memoryMB", "gpu"), **without_empty(ports=dict(role.ports))},
        extraContainerOptions=without_empty(shmMB=role.shm or None),
        commands=_commands(task),
    )


def version_1(spec: JobSpec) -> dict[str, Any]:
    """The job as a JobConfig from before protocol version 2."""
    job = _Writing(spec)
    return without_empty(
        jobName=job.name,
        image=job.images[0],
        virtualCluster=spec.queue,
        retryCount=job.plan.retries or None,
        taskRoles=[_role_1(job, task) for task in spec.tasks],
    )


def _role_1(job: _Writing, task: TaskSpec) -> dict[str, Any]:
    role, ends = job.roles[task.name], job.ends(task)
    ports = [{"label": label, "beginAt": 0, "portNumber": count} for label, count in role.ports.items()]
    return without_empty(
        name=role.name,
        taskNumber=task.replicas,
        **_amounts(task, "cpuNumber", "memoryMB", "gpuNumber"),
        shmMB=role.shm or None,
        portList=ports,
        command="\n".join(_commands(task)),
    ) | {
        "minFailedTaskCount": _none_below(ends.failed),
        "minSucceededTaskCount": _none_below(ends.succeeded),
    }


def _none_below(number: int) -> int | None:
    return number if number > 0 else None


def _amounts(task: TaskSpec, cpu: str, memory: str, gpu: str) -> dict[str, int]:
    """Integers, rounded up."""
    request = task.request
    sizes = ((cpu, "cpu", 1000), (memory, "memory", _MiB), (gpu, plugin.DEVICE, 1000))
    return {name: math.ceil(request.amount(resource) / size) for name, resource, size in sizes}


def _commands(task: TaskSpec) -> list[str]:
    """A script as its lines, or whole if lines are blank or indented; any other command as one shell line."""
    if not task.command:
        message = translate("A JobConfig needs commands. {task} runs the command of its image.", task=task.name)
        raise Invalid([Problem("tasks", message)])
    variables = [f"export {name}={shlex.quote(value)}" for name, value in task.env.items()]
    if len(task.command) != len(SHELL) + 1 or task.command[: len(SHELL)] != SHELL:
        return [*variables, shlex.join(task.command)]
    lines = task.command[-1].split("\n")
    is_plain = all(line and line == line.strip() for line in lines)
    return [*variables, *(lines if is_plain else [task.command[-1]])]
