"""The job that a JobConfig of either version requests, and the JobSpec document for it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from hekla.domain.formats.fields import Findings
from hekla.domain.formats.openpai import completion, names
from hekla.domain.formats.openpai.completion import CompletionPlan, RoleCompletion
from hekla.domain.formats.reader import without_none
from hekla.domain.frameworks import openpai as plugin
from hekla.domain.translation import gettext_noop, translate
from hekla.domain.validation import join, quote

SHELL = ("bash", "-c")
MAX_DESCRIPTION = 2_000
_JOB_CALLED = gettext_noop(
    "the job's name here is {name}, because names have lowercase letters, digits and hyphens. Its pods see {own}."
)
_ROLE_CALLED = gettext_noop(
    "the role's name here is {name}, because names have lowercase letters, digits and hyphens. Its pods see {own}."
)
_SHARED_MEMORY = gettext_noop("the node limits the shared memory of a pod.")
_USUAL_MB = (0, 64, 512)
"""The default values that OpenPAI's forms and versions write."""


@dataclass(slots=True)
class RoleRequest:
    """A task role; values of type Any are not validated yet. `fields`: the paths in the JobConfig."""

    name: str
    path: str
    fields: Mapping[str, str]
    script: str
    image: Any
    replicas: Any
    cpu: Any
    memory_mb: Any
    gpu: Any
    ports: Mapping[str, int]
    ends: RoleCompletion
    shm: int = 0
    env: Mapping[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class JobRequest:
    """A job. `retries_path`: the path of its retries."""

    name: str
    roles: list[RoleRequest]
    queue: str
    retries: int
    retries_path: str
    is_gang: bool = True
    priority: int | None = None
    description: str = ""
    min_success: int | None = None


def document(job: JobRequest, findings: Findings) -> dict[str, Any]:
    """The JobSpec document, with its origins. Reports the names that differ here."""
    _judge_names(job, findings)
    tasks = names.role_labels([role.name for role in job.roles])
    name = names.job_label(job.name, tasks)
    plan = CompletionPlan(
        {task: role.ends for task, role in zip(tasks, job.roles, strict=True)}, job.retries, job.is_gang
    )
    completion.report(plan, findings, job.retries_path)
    _tell_names(job, name, tasks, findings)
    roles = {task: _role(role) for task, role in zip(tasks, job.roles, strict=True)}
    whole = {
        "name": name,
        "description": _description(job, findings),
        "queue": names.label(job.queue) if job.queue else None,
        "priority": job.priority,
        "plugins": {"openpai": plugin.arguments(job.name if job.name != name else "", roles)},
        **completion.read(plan),
        "tasks": [
            _task(role, task, place, plan, findings)
            for place, (task, role) in enumerate(zip(tasks, job.roles, strict=True))
        ],
    }
    return whole | ({"min_success": job.min_success} if job.min_success else {})


def _judge_names(job: JobRequest, findings: Findings) -> None:
    """Report invalid names, which would become part of addresses or variables."""
    names_by_path = [("name", job.name), *((role.path, role.name) for role in job.roles)]
    names_by_path += [(role.path, label) for role in job.roles for label in role.ports]
    for path, name in names_by_path:
        if name and not names.NAME.fullmatch(name):
            place = findings.place_of(path)
            message = translate(
                "{name} is not a valid name. Use at most 255 letters, digits and “_”, “-”, “.”, “~”.", name=quote(name)
            )
            findings.problem(place, message)


def _tell_names(job: JobRequest, name: str, tasks: list[str], findings: Findings) -> None:
    if name != job.name:
        findings.remark("name", translate(_JOB_CALLED, name=quote(name), own=quote(job.name)))
    for task, role in zip(tasks, job.roles, strict=True):
        if task != role.name:
            findings.remark(role.path, translate(_ROLE_CALLED, name=quote(task), own=quote(role.name)))


def _description(job: JobRequest, findings: Findings) -> str:
    if len(job.description) > MAX_DESCRIPTION:
        findings.not_honoured(
            "description", translate("only its first {most:,} characters are kept.", most=MAX_DESCRIPTION)
        )
    return job.description[:MAX_DESCRIPTION]


def _role(role: RoleRequest) -> plugin.TaskRole:
    ends = role.ends
    succeeded = None if ends.succeeded == ends.replicas else ends.succeeded
    return plugin.TaskRole(role.name, role.ports, ends.failed, succeeded, role.shm)


def _task(role: RoleRequest, task: str, place: int, plan: CompletionPlan, findings: Findings) -> dict[str, Any]:
    target = join("tasks", place)
    findings.origins |= {target: role.path, **{join(target, name): path for name, path in role.fields.items()}}
    if role.shm not in _USUAL_MB:
        findings.not_honoured(role.fields["shm"], translate(_SHARED_MEMORY))
    resources = {"cpu": role.cpu, "memory": _memory(role.memory_mb), plugin.DEVICE: role.gpu}
    return without_none(
        {
            "name": task,
            "replicas": role.replicas,
            "command": [*SHELL, role.script],
            "image": role.image,
            "resources": without_none(resources),
            "env": dict(role.env),
            "policies": completion.policies_of(plan, task),
        }
    )


def _memory(megabytes: object) -> object:
    return f"{megabytes}Mi" if isinstance(megabytes, int) and not isinstance(megabytes, bool) else megabytes
