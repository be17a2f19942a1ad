"""The command of the pods of a Ray cluster: `ray start`, with the parameters that a manifest of KubeRay sets.

As in KubeRay, the parameters go to the shell as they are, those that are missing follow from the amounts of the
container, and a command of the container runs before.
"""

import re
from collections.abc import Iterator
from math import ceil
from typing import Any

from hekla.domain.formats.fields import Fields
from hekla.domain.frameworks.ray import RAY, STARTS, start_head, start_worker
from hekla.domain.resources import InvalidQuantity, parse_quantity
from hekla.domain.translation import gettext_noop, translate
from hekla.domain.validation import quote

Document = dict[str, Any]

_NAME = re.compile(r"[a-z][a-z0-9-]{0,62}", re.ASCII)
_WITH_VALUE = ("log-color", "include-dashboard")
"""Parameters for which true and false are values. Others are flags then."""
_OF_PLUGIN = {"port": "port", "dashboard-port": "dashboardPort", "ray-client-server-port": "clientPort"}
"""Parameters of the head that all pods need to know, and the arguments of the job plugin."""
_OF_PODS = ("head", "block", "address", "node-ip-address", "dashboard-host")
_USUAL = ("true", "0.0.0.0")  # noqa: S104 - text to compare with
_ADDRESSES = gettext_noop("pods listen at their own addresses, and workers join the head of their job.")


class StartParameters:
    """The `rayStartParams` of a group of pods."""

    def __init__(self, group: Fields) -> None:
        self._fields = fields = group.fields("rayStartParams")
        self._values = {name: fields.text(name) for name in fields.names()}
        for name, value in self._values.items():
            if not _NAME.fullmatch(name):
                message = translate("{name} is not the name of a parameter of ray start.", name=quote(name))
                fields.findings.problem(fields.path, message)
            elif name in _OF_PODS and value not in _USUAL:
                fields.findings.not_honoured(fields.at(name), translate(_ADDRESSES))

    @property
    def plugin_arguments(self) -> dict[str, str]:
        """The arguments of the job plugin, from the parameters of the head."""
        return {option: self._values[name] for name, option in _OF_PLUGIN.items() if name in self._values}

    def head_command(self, task: Document, arguments: list[str]) -> tuple[str, ...]:
        """The command of the head. `task`: command and amounts of its container; `arguments`: of the job plugin."""
        before = _before(task)
        options, more = RAY.read(arguments)[0], self._arguments(task, (*_OF_PODS, *_OF_PLUGIN))
        return _own(task) if STARTS in before else start_head(options, *more, before=before)

    def worker_command(self, task: Document) -> tuple[str, ...]:
        """The command of a worker."""
        before = _before(task)
        return _own(task) if STARTS in before else start_worker(*self._arguments(task, _OF_PODS), before=before)

    def _arguments(self, task: Document, elsewhere: tuple[str, ...]) -> Iterator[str]:
        for name, value in self._values.items():
            is_flag = name not in _WITH_VALUE and value.lower() in ("true", "false")
            if name not in elsewhere and not (is_flag and value.lower() == "false"):
                yield f"--{name}" if is_flag else f"--{name}={value}"
        yield from (f"--{name}={value}" for name, value in _amounts(task).items() if name not in self._values)


def _amounts(task: Document) -> dict[str, int]:
    """What the container requests, as Ray counts it."""
    amounts = {name: _amount(name, value) for name, value in task.get("resources", {}).items()}
    found = {
        "num-cpus": ceil(amounts.get("cpu", 0.0) / 1000),
        "memory": int(amounts.get("memory", 0.0)),
        "num-gpus": int(sum(value for name, value in amounts.items() if name.endswith("gpu")) / 1000),
    }
    return {name: value for name, value in found.items() if value}


def _amount(name: str, value: object) -> float:
    """In internal units; 0 for a value that the JobSpec refuses."""
    try:
        return parse_quantity(name, value) if isinstance(value, str | int | float) else 0.0
    except InvalidQuantity:
        return 0.0


def _own(task: Document) -> tuple[Any, ...]:
    return (*(task.get("command") or ()), *(task.get("args") or ()))


def _before(task: Document) -> str:
    """The command of the container as a line for the shell."""
    return " ".join(map(str, _own(task)))
