"""`mpi`: mpirun in the master starts ranks in the workers; by ssh if they are on machines of their own.

The master gets the workers in two hostfiles, one for each format (Open MPI, Hydra), and variables that name hostfile
and launcher. For pods on one machine the launcher is a file (`mpi_agent.py`); for others it is ssh, with the keys of
the plugin `ssh`. Workers without a command run that file, which serves in either case.
"""

from collections.abc import Mapping, Sequence
from os.path import relpath
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from hekla.domain.frameworks import mpi_agent
from hekla.domain.frameworks.base import (
    Framework,
    Option,
    Options,
    PodContext,
    PodSettings,
    find_task,
    is_loopback,
    missing_roles,
)
from hekla.domain.frameworks.ssh import SSH
from hekla.domain.translation import gettext_noop, translate

if TYPE_CHECKING:
    from hekla.domain.task_spec import TaskSpec

FOLDER = "etc/mpi"
AGENT = f"{FOLDER}/mpi_agent.py"
OPEN_MPI_HOSTS = f"{FOLDER}/hostfile"
HYDRA_HOSTS = f"{FOLDER}/machinefile"
_AGENT_TEXT = Path(mpi_agent.__file__).read_text(encoding="utf-8")


def _settings(context: PodContext, options: Options) -> PodSettings:
    if context.task not in (options["master"], options["worker"]):
        return PodSettings()
    by_ssh = PodSettings() if is_loopback(context.own_address) else _ssh(context, options)
    if context.task == options["worker"]:
        return by_ssh | PodSettings(files={AGENT: _AGENT_TEXT})
    workers = context.find(options["worker"])
    return by_ssh if workers is None else by_ssh | _of_master(context, workers, options)


def _ssh(context: PodContext, options: Options) -> PodSettings:
    """The settings of the plugin `ssh`, unless the job uses it itself, and the port for a serving worker."""
    ssh_options = {**SSH.read(())[0], "ssh-port": options["port"]}
    keys = PodSettings() if SSH.name in context.spec.plugins else SSH.settings(context, ssh_options)
    return keys | PodSettings(env={mpi_agent.PORT: str(options["port"])})


def _of_master(context: PodContext, workers: "TaskSpec", options: Options) -> PodSettings:
    hosts, slots = context.addresses_of(workers), options["slots"]
    folder = context.spec.task(context.task).working_dir
    launcher = {**_hosts(folder), **(_agent(folder) if is_loopback(context.own_address) else {})}
    return PodSettings(
        env={"MPI_HOST": ",".join(hosts), **({} if _is_outside(folder) else launcher)},
        files={
            AGENT: _AGENT_TEXT,
            OPEN_MPI_HOSTS: "".join(f"{host} slots={slots}\n" for host in hosts),
            HYDRA_HOSTS: "".join(f"{host}:{slots}\n" for host in hosts),
        },
    )


def _hosts(working_dir: str) -> dict[str, str]:
    """The hostfile variables of Hydra (MPICH), and of Open MPI before and since version 5."""
    hydra, open_mpi = (_relative_path(working_dir, path) for path in (HYDRA_HOSTS, OPEN_MPI_HOSTS))
    return {
        "HYDRA_HOST_FILE": hydra,
        "OMPI_MCA_orte_default_hostfile": open_mpi,
        "PRTE_MCA_prte_default_hostfile": open_mpi,
    }


def _agent(working_dir: str) -> dict[str, str]:
    """The launcher in place of ssh. Ranks keep the variables of their own pod; the master's contain its address."""
    agent = _relative_path(working_dir, AGENT)
    return {
        "HYDRA_ENV": "none",
        "HYDRA_USE_LOCALHOST": "1",
        "HYDRA_LAUNCHER": "rsh",
        "HYDRA_LAUNCHER_EXEC": "python",
        "HYDRA_LAUNCHER_EXTRA_ARGS": agent,
        "OMPI_MCA_plm_rsh_agent": f"python {agent}",
        "PRTE_MCA_plm_ssh_agent": f"python {agent}",
    }


def _relative_path(working_dir: str, path: str) -> str:
    """A file of the pod's folder, relative to the folder below it in which the program starts."""
    return relpath(path, working_dir) if working_dir else path


def _problems(tasks: Sequence["TaskSpec"], options: Options) -> list[str]:
    return missing_roles(["master", "worker"], tasks, options)


def _remarks(tasks: Sequence["TaskSpec"], options: Options) -> list[str]:
    master, worker = (find_task(options[role], tasks) for role in ("master", "worker"))
    found = []
    if worker and any("sshd" in word for word in worker.command):
        found.append(
            translate(
                "on clusters of the kind local mpirun does not use ssh. To run there too, let “{task}” start "
                "python {agent}.",
                task=worker.name,
                agent=AGENT,
            )
        )
    if master and _is_outside(master.working_dir):
        found.append(
            translate(
                "“{task}” does not run in its pod's folder, so mpirun needs the path: ~/{folder}.",
                task=master.name,
                folder=FOLDER,
            )
        )
    return found


def _is_outside(working_dir: str) -> bool:
    return PurePosixPath(working_dir).is_absolute()


def _commands(options: Options) -> Mapping[str, tuple[str, ...]]:
    return {str(options["worker"]): ("python", AGENT)}


def _scaling(_options: Options) -> str:
    return translate(
        "ranks stay on the workers that mpirun found at its start, and mpirun ends when one of them stops. New "
        "workers get ranks when the master restarts."
    )


MPI = Framework(
    "mpi",
    "Lets mpirun in the master start ranks in the workers.",
    _settings,
    options=(
        Option("master", "master"),
        Option("worker", "worker"),
        Option("slots", 1, number=gettext_noop("a number of ranks"), most=1024),
        Option("port", 22),
    ),
    implies=("svc",),
    problems=_problems,
    remarks=_remarks,
    commands=_commands,
    scaling=_scaling,
)
