"""The parts of a job plugin."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from ipaddress import AddressValueError, IPv4Address
from typing import TYPE_CHECKING

from hekla.domain.errors import Problem
from hekla.domain.translation import gettext_noop, translate
from hekla.domain.validation import quote, suggest

if TYPE_CHECKING:  # jobspec imports this package
    from hekla.domain.jobspec import JobSpec
    from hekla.domain.task_spec import TaskSpec

Value = str | int | bool
Options = Mapping[str, Value]
MAX_PORT = 65_535
_FIRST_OWN_PORT, _OWN_PORTS = 10_000, 22_000


@dataclass(frozen=True, slots=True)
class PodSettings:
    """The settings of one pod: environment, files (paths relative to its working folder) and host names.

    `secrets`: files that only the pod's processes may read. `mounts`: folders of files by the absolute paths where
    programs also look for them; pods of the local backend share the machine's root and have none. `is_closed`: only
    pods of the same job may connect, if the cluster has network policies.
    """

    env: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    hosts: Mapping[str, str] = field(default_factory=dict)
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)
    mounts: Mapping[str, str] = field(default_factory=dict)
    is_closed: bool = False

    @property
    def paths(self) -> set[str]:
        """The paths of all files, secret or not."""
        return {*self.files, *self.secrets}

    def __or__(self, other: "PodSettings") -> "PodSettings":
        """Both combined; `other` wins if both set the same thing."""
        return PodSettings(
            env={**self.env, **other.env},
            files={**self.files, **other.files},
            hosts={**self.hosts, **other.hosts},
            secrets={**self.secrets, **other.secrets},
            mounts={**self.mounts, **other.mounts},
            is_closed=self.is_closed or other.is_closed,
        )


@dataclass(frozen=True, slots=True)
class PodContext:
    """The pod that a plugin configures, and the address of every pod of its job (an IP address or a DNS name).

    `secret`: 32 bytes known to the job's pods only; empty for a preview.
    """

    spec: "JobSpec"
    task: str
    index: int
    addresses: Mapping[tuple[str, int], str]
    secret: bytes = field(default=b"", repr=False)
    owner: str = ""

    @property
    def own_address(self) -> str:
        """The address of this pod."""
        return self.addresses[self.task, self.index]

    def addresses_of(self, task: "TaskSpec", port: Value | None = None) -> list[str]:
        """The addresses of a task's replicas in order, with the port if one is given."""
        suffix = "" if port is None else f":{port}"
        return [f"{self.addresses[task.name, index]}{suffix}" for index in range(task.replicas)]

    def servers_of(self, task: "TaskSpec", port: int) -> list[str]:
        """As `addresses_of`, for servers that listen on all addresses of their machine (`port_at`)."""
        return [f"{address}:{port_at(address, port)}" for address in self.addresses_of(task)]

    def find(self, name: Value) -> "TaskSpec | None":
        """The job's task of that name."""
        return find_task(name, self.spec.tasks)


def shell(line: str, before: str = "") -> tuple[str, ...]:
    """The command that runs this line in a shell. `before`: a line that must succeed first; empty for none."""
    return "sh", "-c", f"{before} && {line}" if before else line


def port_at(address: str, port: int) -> int:
    """The port of a server at this address that listens on every address of its machine.

    All loopback addresses belong to one machine, so such servers would collide. Each loopback address therefore gets
    its own port, below Linux's range for outgoing connections.
    """
    number = _loopback(address)
    return port if number is None else _FIRST_OWN_PORT + int(number) % _OWN_PORTS


def is_loopback(address: str) -> bool:
    """Whether pods with this address are processes of one machine and one user."""
    return _loopback(address) is not None


def _loopback(address: str) -> IPv4Address | None:
    try:
        number = IPv4Address(address)
    except AddressValueError:
        return None
    return number if number.is_loopback else None


@dataclass(frozen=True, slots=True)
class Option:
    """An argument of a plugin, written `--name=value`, with the type of its default. A number is a port by default.

    `unheeded`: why the argument has no effect here. Setting it gives a warning.
    """

    name: str
    default: Value
    number: str = gettext_noop("a port")
    most: int = MAX_PORT
    unheeded: str = ""

    def read(self, text: str | None) -> Value:
        """Parse a value. Raises ValueError with a sentence."""
        if isinstance(self.default, bool):
            return self._truth(text)
        if not text:
            raise ValueError(
                translate("--{name} needs a value, for example --{name}={value}.", name=self.name, value=self.default)
            )
        if isinstance(self.default, str):
            return text
        if not text.isascii() or not text.isdigit() or not 1 <= int(text[:9]) <= self.most:
            raise ValueError(self._not_a_number(text))
        return int(text)

    def _not_a_number(self, text: str) -> str:
        return translate(
            "--{name} must be {number} from 1 to {most}, not {given}.",
            name=self.name,
            number=translate(self.number),
            most=self.most,
            given=quote(text),
        )

    def _truth(self, text: str | None) -> bool:
        if text is None or text.lower() in ("true", "1", "t"):
            return True
        if text.lower() in ("false", "0", "f"):
            return False
        raise ValueError(translate("--{name} must be true or false, not {given}.", name=self.name, given=quote(text)))


def _no_remarks(_tasks: Sequence["TaskSpec"], _options: Options) -> list[str]:
    return []


def _no_commands(_options: Options) -> dict[str, tuple[str, ...]]:
    return {}


def _no_scaling_remark(_options: Options) -> str:
    return ""


def fixed_at_start(what: str) -> Callable[[Options], str]:
    """A scaling remark for plugins that give `what` to a pod when it starts, and never again."""
    return lambda _options: translate(
        "running pods keep the old {what}. Only new pods see the change. Restart the job to apply it to all pods.",
        what=translate(what),
    )


def find_task(name: Value, tasks: Sequence["TaskSpec"]) -> "TaskSpec | None":
    """The task of that name."""
    return next((task for task in tasks if task.name == name), None)


def missing_roles(roles: Sequence[str], tasks: Sequence["TaskSpec"], options: Options) -> list[str]:
    """A sentence for each option whose role has no task in the job, or a task without replicas."""
    names = ", ".join(task.name for task in tasks)
    problems = []
    for role in roles:
        task = find_task(options[role], tasks)
        if task is None:
            problems.append(
                translate(
                    "Unknown task “{name}”. Set it with --{role}=NAME ({names}).",
                    name=options[role],
                    role=role,
                    names=names,
                )
            )
        elif not task.replicas:
            problems.append(translate("The task “{task}” has no replicas.", task=task.name))
    twice = len({options[role] for role in roles}) < len(roles)
    message = translate("One task cannot have two of these roles: {roles}.", roles=", ".join(roles))
    return problems or ([message] if twice else [])


def several_leaders(role: str, tasks: Sequence["TaskSpec"], options: Options) -> list[str]:
    """A sentence if the task of a single-pod role has several replicas."""
    task = find_task(options[role], tasks)
    if task is None or task.replicas <= 1:
        return []
    return [
        translate(
            "Only one {role} is allowed, but “{task}” has {replicas} replicas.",
            role=role,
            task=task.name,
            replicas=task.replicas,
        )
    ]


@dataclass(frozen=True, slots=True)
class Framework:
    """A job plugin.

    `implies`: plugins that it needs. `problems`: errors in a job that uses it. `remarks`: warnings. `commands`: default
    commands by task name. `scaling`: what running pods do not notice when the job is scaled; empty if they notice all.
    `tells_addresses`: whether its pods get one another's addresses.
    """

    name: str
    summary: str
    settings: Callable[[PodContext, Options], PodSettings]
    options: tuple[Option, ...] = ()
    implies: tuple[str, ...] = ()
    problems: Callable[[Sequence["TaskSpec"], Options], list[str]] = _no_remarks
    remarks: Callable[[Sequence["TaskSpec"], Options], list[str]] = _no_remarks
    commands: Callable[[Options], Mapping[str, tuple[str, ...]]] = _no_commands
    scaling: Callable[[Options], str] = _no_scaling_remark
    tells_addresses: bool = True

    def read(self, arguments: Sequence[str]) -> tuple[Options, list[Problem]]:
        """The options with defaults filled in, and the problems of the arguments by their index."""
        known = {option.name: option for option in self.options}
        values: dict[str, Value] = {option.name: option.default for option in self.options}
        problems = []
        for place, argument in enumerate(arguments):
            name, text = _named(argument), argument.partition("=")[2]
            if not argument.startswith("-") or name not in known:
                problems.append(Problem(str(place), self._unknown(argument, name)))
                continue
            try:
                values[name] = known[name].read(text if "=" in argument else None)
            except ValueError as error:
                problems.append(Problem(str(place), str(error)))
        return values, problems

    def unheeded(self, arguments: Sequence[str]) -> list[Problem]:
        """Arguments without effect that differ from the default, by their index."""
        options = {option.name: option for option in self.options if option.unheeded}
        found = [(place, name) for place, argument in enumerate(arguments) if (name := _named(argument)) in options]
        values = self.read(arguments)[0]
        return [
            Problem(str(place), translate("Ignored: {why}", why=translate(options[name].unheeded)))
            for place, name in found
            if values[name] != options[name].default
        ]

    def _unknown(self, argument: str, name: str) -> str:
        names = [option.name for option in self.options]
        if not names:
            return translate("The plugin {plugin} takes no arguments.", plugin=self.name)
        known = ", ".join(f"--{one}=…" for one in names)
        hint = suggest(name, names) or translate(". Supported arguments: {names}.", names=known)
        return translate(
            "The plugin {plugin} has no argument {argument}{hint}",
            plugin=self.name,
            argument=quote(argument),
            hint=hint,
        )


def _named(argument: str) -> str:
    """The option that an argument names."""
    return argument.lstrip("-").partition("=")[0]
