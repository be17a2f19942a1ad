"""`flink`: a job manager, and task managers that register with it.

Both start Flink if they have no command; the job manager then accepts programs. All tasks get the address of the job
manager in JOB_MANAGER_RPC_ADDRESS, the variable of Flink's images.
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

if TYPE_CHECKING:
    from hekla.domain.task_spec import TaskSpec

_PROGRAMS = "${FLINK_HOME:+$FLINK_HOME/bin/}"
_MANAGER = "-Djobmanager.rpc.address=$JOB_MANAGER_RPC_ADDRESS"
_OWN_MANAGER = "${HEKLA_POD_ADDRESS:+-Djobmanager.bind-host=$HEKLA_POD_ADDRESS -Drest.bind-address=$HEKLA_POD_ADDRESS}"
_OWN_ADDRESS = "${HEKLA_POD_ADDRESS:+-Dtaskmanager.host=$HEKLA_POD_ADDRESS -Dtaskmanager.bind-host=$HEKLA_POD_ADDRESS}"


def _settings(context: PodContext, options: Options) -> PodSettings:
    return PodSettings(env={"JOB_MANAGER_RPC_ADDRESS": context.addresses[str(options["jobmanager"]), 0]})


def _commands(options: Options) -> Mapping[str, tuple[str, ...]]:
    port = f"-Djobmanager.rpc.port={options['port']}"
    return {
        str(options["jobmanager"]): start_job_manager("jobmanager.sh", port),
        str(options["taskmanager"]): start_task_manager(port),
    }


def start_job_manager(program: str, *more: str, before: str = "") -> tuple[str, ...]:
    """The command of the job manager. `more`: further arguments for the shell; `before`: a command that runs first."""
    return _start(program, _MANAGER, _OWN_MANAGER, *more, before=before)


def start_task_manager(*more: str) -> tuple[str, ...]:
    """The command of a task manager."""
    return _start("taskmanager.sh", _MANAGER, _OWN_ADDRESS, *more)


def _start(program: str, *arguments: str, before: str = "") -> tuple[str, ...]:
    return shell(f"exec {_PROGRAMS}{' '.join((program, 'start-foreground', *arguments))}", before)


def _problems(tasks: Sequence["TaskSpec"], options: Options) -> list[str]:
    return missing_roles(["jobmanager"], tasks, options) or several_leaders("jobmanager", tasks, options)


FLINK = Framework(
    "flink",
    "Starts a cluster of Flink and sets JOB_MANAGER_RPC_ADDRESS.",
    _settings,
    options=(Option("jobmanager", "jobmanager"), Option("taskmanager", "taskmanager"), Option("port", 6123)),
    implies=("svc",),
    problems=_problems,
    commands=_commands,
)
