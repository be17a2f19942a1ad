"""`ray`: a head and the workers that join it.

Head and workers without a command start Ray; a task's own command replaces that. All tasks get the head's address in
the variables that Ray reads, so other tasks can submit work. On the local cluster each listens at its pod's address.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from hekla.domain.frameworks.base import (
    Framework,
    Option,
    Options,
    PodContext,
    PodSettings,
    missing_roles,
    several_leaders,
)
from hekla.domain.translation import gettext_noop, translate

if TYPE_CHECKING:
    from hekla.domain.task_spec import TaskSpec

_ONE_CONTAINER = gettext_noop("only the first container of a pod runs.")
_OWN_ADDRESS = "${HEKLA_POD_ADDRESS:+--node-ip-address=$HEKLA_POD_ADDRESS}"


def _settings(context: PodContext, options: Options) -> PodSettings:
    host = context.addresses[str(options["head"]), 0]
    return PodSettings(
        env={
            "RAY_ADDRESS": f"{host}:{options['port']}",
            "RAY_API_SERVER_ADDRESS": f"http://{host}:{options['dashboardPort']}",
            "RAY_TMPDIR": "/tmp",  # noqa: S108 - a pod's own folder exceeds the length limit of socket paths
        }
    )


def _commands(options: Options) -> Mapping[str, tuple[str, ...]]:
    return {
        str(options["worker"]): _shell(f"exec ray start --block {_OWN_ADDRESS} --address=$RAY_ADDRESS"),
        str(options["head"]): _shell(
            f"exec ray start --head --block {_OWN_ADDRESS} --port={options['port']}"
            f" --dashboard-host=${{HEKLA_POD_ADDRESS:-0.0.0.0}} --dashboard-port={options['dashboardPort']}"
            f" --ray-client-server-port={options['clientPort']}"
        ),
    }


def _shell(line: str) -> tuple[str, ...]:
    return "sh", "-c", line


def _problems(tasks: Sequence["TaskSpec"], options: Options) -> list[str]:
    if options["head"] == options["worker"]:
        return [translate("--head and --worker must be two different tasks.")]
    return missing_roles(["head"], tasks, options) or several_leaders("head", tasks, options)


def _remarks(tasks: Sequence["TaskSpec"], options: Options) -> list[str]:
    """Warn about tasks with their own command, which runs here. Volcano replaces every command by its own."""
    commands = _commands(options)
    return [
        translate("“{task}” has its own command, which runs instead of ray start.", task=task.name)
        for task in tasks
        if task.name in commands and task.command != commands[task.name]
    ]


RAY = Framework(
    "ray",
    "Starts a cluster of Ray and sets RAY_ADDRESS.",
    _settings,
    options=(
        Option("head", "head"),
        Option("headContainer", "head", unheeded=_ONE_CONTAINER),
        Option("worker", "worker"),
        Option("workerContainer", "worker", unheeded=_ONE_CONTAINER),
        Option("port", 6379),
        Option("dashboardPort", 8265),
        Option("clientPort", 10001),
    ),
    implies=("svc",),
    problems=_problems,
    remarks=_remarks,
    commands=_commands,
)
