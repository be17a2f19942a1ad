"""`openpai`: pods get the variables that programs for OpenPAI read.

The variables contain OpenPAI's names of task roles and ports, which allow more characters than ours, so the arguments
hold the original names. Ports are not allocated: every pod has its own address, and its ports start at a number derived
from the address. So pods that listen on all addresses of one machine rarely collide.
"""

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from hekla.domain.frameworks.base import Framework, Option, Options, PodContext, PodSettings
from hekla.domain.resources import Resources
from hekla.domain.translation import translate
from hekla.domain.validation import quote

if TYPE_CHECKING:
    from hekla.domain.task_spec import TaskSpec

DEFAULT_PORTS = ("ssh", "http")
"""Every task role has these ports, requested or not."""
DEVICE = "nvidia.com/gpu"
MAX_PORTS = 100
MANY_PODS = 1000

_FIRST_PORT, _LAST_PORT = 10_000, 29_999
_ROLE = r"(?P<task>[a-z0-9-]{1,63})"
_MiB = 2**20
_ALL = "all"
_USUAL_END = (1, None)
_ENTRIES = {
    "roles": (re.compile(rf"{_ROLE}:(?P<role>[A-Za-z0-9_.~-]{{1,255}})"), "worker:Worker_1,ps:PS"),
    "ports": (re.compile(rf"{_ROLE}/(?P<label>[A-Za-z0-9_.~-]{{1,255}}):(?P<count>\d{{1,3}})"), "worker/http:1"),
    "completion": (re.compile(rf"{_ROLE}:(?P<failed>-1|\d{{1,5}})/(?P<succeeded>-1|\d{{1,5}}|all)"), "worker:1/-1"),
    "shm": (re.compile(rf"{_ROLE}:(?P<shm>\d{{1,9}})"), "worker:512"),
}


@dataclass(frozen=True, slots=True)
class TaskRole:
    """Facts that a TaskSpec lacks: the role's name in OpenPAI, ports, when it ends the job, shared memory (MiB)."""

    name: str
    ports: Mapping[str, int] = field(default_factory=dict)
    min_failed: int = 1
    min_succeeded: int | None = None
    shm: int = 0

    def succeeded(self, task: "TaskSpec") -> int:
        """The number of successes that end the job; by default all."""
        return task.replicas if self.min_succeeded is None else self.min_succeeded


def arguments(name: str, roles: Mapping[str, TaskRole]) -> list[str]:
    """The plugin's arguments. `name`: the job's name in OpenPAI, empty if the same here; `roles`: by task name."""
    lists = {
        "roles": [f"{task}:{role.name}" for task, role in roles.items() if role.name != task],
        "ports": [f"{task}/{label}:{count}" for task, role in roles.items() for label, count in role.ports.items()],
        "completion": [
            f"{task}:{role.min_failed}/{_ALL if role.min_succeeded is None else role.min_succeeded}"
            for task, role in roles.items()
            if (role.min_failed, role.min_succeeded) != _USUAL_END
        ],
        "shm": [f"{task}:{role.shm}" for task, role in roles.items() if role.shm],
    }
    list_arguments = [f"--{option}={','.join(entries)}" for option, entries in lists.items() if entries]
    return [*([f"--name={name}"] if name else []), *list_arguments]


def roles_of(tasks: Sequence["TaskSpec"], options: Options) -> dict[str, TaskRole]:
    """The role of each task."""
    names = {match["task"]: match["role"] for match in _matches(options, "roles")}
    ports: dict[str, dict[str, int]] = {}
    for match in _matches(options, "ports"):
        ports.setdefault(match["task"], {})[match["label"]] = int(match["count"])
    ends = {match["task"]: (int(match["failed"]), _successes(match)) for match in _matches(options, "completion")}
    memory = {match["task"]: int(match["shm"]) for match in _matches(options, "shm")}
    return {
        task.name: TaskRole(
            names.get(task.name, task.name),
            ports.get(task.name, {}),
            *ends.get(task.name, _USUAL_END),
            shm=memory.get(task.name, 0),
        )
        for task in tasks
    }


def _successes(match: re.Match[str]) -> int | None:
    return None if match["succeeded"] == _ALL else int(match["succeeded"])


def ports_of(role: TaskRole, address: str) -> dict[str, list[int]]:
    """The ports of a pod of this role at this address, by label."""
    wanted = {**dict.fromkeys(DEFAULT_PORTS, 1), **role.ports}
    room = _LAST_PORT - _FIRST_PORT + 1 - sum(wanted.values())
    at = _FIRST_PORT + int.from_bytes(hashlib.sha256(address.encode()).digest()[:4], "big") % room
    ports = {}
    for label, count in wanted.items():
        ports[label] = list(range(at, at + count))
        at += count
    return ports


def _matches(options: Options, option: str) -> Iterator[re.Match[str]]:
    pattern, _ = _ENTRIES[option]
    return (match for entry in str(options[option]).split(",") if (match := pattern.fullmatch(entry)))


def _settings(context: PodContext, options: Options) -> PodSettings:
    roles = roles_of(context.spec.tasks, options)
    named = str(options["name"]) or context.spec.name
    job = f"{context.owner}~{named}" if context.owner else named
    of_job = {"PAI_JOB_NAME": job, "PAI_FRAMEWORK_NAME": job, "PAI_DEFAULT_FS_URI": ""}
    of_person = {"PAI_USER_NAME": context.owner, "PAI_USERNAME": context.owner} if context.owner else {}
    env = {**of_job, **of_person, "PAI_VIRTUAL_CLUSTER": context.spec.queue}
    env |= _numbers(context.spec.tasks, roles)
    if context.spec.replicas <= MANY_PODS:
        env |= _everybody(context, roles)
    return PodSettings(env=env | _own(context, roles[context.task]))


def _numbers(tasks: Sequence["TaskSpec"], roles: Mapping[str, TaskRole]) -> dict[str, str]:
    """The counts, resources and minimums of task roles; counts also under the variable names of older versions."""
    names, pods = ",".join(role.name for role in roles.values()), str(sum(task.replicas for task in tasks))
    env = {"PAI_TASK_ROLE_LIST": names, "PAI_JOB_TASK_ROLE_LIST": names}
    env |= dict.fromkeys(("PAI_TASK_ROLE_COUNT", "PAI_TASK_ROLES_NUM", "PAI_JOB_TASK_ROLE_COUNT"), str(len(tasks)))
    env |= dict.fromkeys(("PAI_TASKS_NUM", "PAI_JOB_TASK_COUNT"), pods)
    for task in tasks:
        role = roles[task.name]
        env |= {
            f"PAI_TASK_ROLE_TASK_COUNT_{role.name}": str(task.replicas),
            f"PAI_RESOURCE_{role.name}": _resources(task.request, role),
            f"PAI_MIN_FAILED_TASK_COUNT_{role.name}": str(role.min_failed),
            f"PAI_MIN_SUCCEEDED_TASK_COUNT_{role.name}": str(role.succeeded(task)),
        }
    return env


def _resources(request: Resources, role: TaskRole) -> str:
    """Numbers of GPUs and processors, then MiB of memory and of shared memory."""
    amounts = (request.amount(DEVICE) / 1000, request.amount("cpu") / 1000, request.amount("memory") / _MiB)
    return ",".join([*(f"{amount:.10g}" for amount in amounts), str(role.shm)])


def _everybody(context: PodContext, roles: Mapping[str, TaskRole]) -> dict[str, str]:
    """The addresses and ports of all pods of the job."""
    env, instances = {}, []
    for task in context.spec.tasks:
        role, hosts = roles[task.name], []
        for index, address in enumerate(context.addresses_of(task)):
            ports = ports_of(role, address)
            hosts.append(f"{address}:{ports['http'][0]}")
            instances.append(f"{role.name}:{index}")
            env[f"PAI_HOST_IP_{role.name}_{index}"] = address
            for label, numbers in ports.items():
                text = ",".join(map(str, numbers))
                env[f"PAI_PORT_LIST_{role.name}_{index}_{label}"] = text
                env[f"PAI_{role.name}_{index}_{label}_PORT"] = text
        env[f"PAI_TASK_ROLE_{role.name}_HOST_LIST"] = ",".join(hosts)
    return env | {"PAI_TASK_ROLE_INSTANCES": ",".join(instances)}


def _own(context: PodContext, role: TaskRole) -> dict[str, str]:
    """The variables about the pod itself."""
    index, address, ports = str(context.index), context.own_address, ports_of(role, context.own_address)
    lists = {label: ",".join(map(str, numbers)) for label, numbers in ports.items()}
    return {
        "PAI_CURRENT_TASK_ROLE_NAME": role.name,
        "PAI_CURRENT_TASK_ROLE_CURRENT_TASK_INDEX": index,
        "PAI_TASK_INDEX": index,
        **dict.fromkeys(("PAI_CURRENT_CONTAINER_IP", "PAI_CONTAINER_HOST_IP"), address),
        **dict.fromkeys(("PAI_CURRENT_CONTAINER_PORT", "PAI_CONTAINER_HOST_PORT"), lists["http"]),
        "PAI_CONTAINER_SSH_PORT": lists["ssh"],
        "PAI_CONTAINER_HOST_PORT_LIST": "".join(f"{label}:{numbers};" for label, numbers in lists.items()),
        **{f"PAI_CONTAINER_HOST_{label}_PORT_LIST": numbers for label, numbers in lists.items()},
    }


def _problems(tasks: Sequence["TaskSpec"], options: Options) -> list[str]:
    names = {task.name for task in tasks}
    wrong = [sentence for option in _ENTRIES for sentence in _wrong_entries(option, str(options[option]), names)]
    if wrong:
        return wrong
    roles = roles_of(tasks, options)
    if len({role.name for role in roles.values()}) < len(roles):
        return [translate("Two tasks have the same name in --roles.")]
    ports = [sum(role.ports.values()) for role in roles.values()]
    return [translate("A pod has at most {most} ports.", most=MAX_PORTS)] if max(ports) > MAX_PORTS else []


def _wrong_entries(option: str, text: str, names: set[str]) -> Iterator[str]:
    pattern, example = _ENTRIES[option]
    for entry in text.split(",") if text else ():
        match = pattern.fullmatch(entry)
        if match is None:
            yield translate(
                "--{option} must have the form --{option}={example}. {entry} does not.",
                option=option,
                example=example,
                entry=quote(entry),
            )
        elif match["task"] not in names:
            yield translate(
                "--{option} names the task {task}, which the job does not have.",
                option=option,
                task=quote(match["task"]),
            )


def _remarks(tasks: Sequence["TaskSpec"], _options: Options) -> list[str]:
    if sum(task.replicas for task in tasks) <= MANY_PODS:
        return []
    return [
        translate(
            "The job has more than {many:,} pods, so each pod gets only its own address and ports.",
            many=MANY_PODS,
        )
    ]


OPENPAI = Framework(
    "openpai",
    "Tells pods of one another as OpenPAI does (PAI_HOST_IP_…, PAI_PORT_LIST_…).",
    _settings,
    options=tuple(Option(name, "") for name in ("name", *_ENTRIES)),
    problems=_problems,
    remarks=_remarks,
)
