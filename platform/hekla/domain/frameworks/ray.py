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
    shell,
)
from hekla.domain.translation import gettext_noop, translate

if TYPE_CHECKING:
    from hekla.domain.task_spec import TaskSpec

_ONE_CONTAINER = gettext_noop("only the first container of a pod runs.")
STARTS = "ray start"
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
    return {str(options["worker"]): start_worker(), str(options["head"]): start_head(options)}


def start_head(options: Options, *more: str, before: str = "") -> tuple[str, ...]:
    """The command of the head. `more`: further arguments of `ray start`; `before`: a shell command that runs first."""
    own = (
        f"--head --block {_OWN_ADDRESS} --port={options['port']}"
        f" --dashboard-host=${{HEKLA_POD_ADDRESS:-0.0.0.0}} --dashboard-port={options['dashboardPort']}"
        f" --ray-client-server-port={options['clientPort']}"
    )
    return _start(own, more, before)


def start_worker(*more: str, before: str = "") -> tuple[str, ...]:
    """The command of a worker, with the parameters of `start_head`."""
    return _start(f"--block {_OWN_ADDRESS} --address=$RAY_ADDRESS", more, before)


def _start(own: str, more: Sequence[str], before: str) -> tuple[str, ...]:
    return shell(" ".join(("exec", STARTS, own, *more)), before)


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
        if task.name in commands and not any(STARTS in word for word in task.command)
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
