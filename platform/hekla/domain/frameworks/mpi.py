"""`mpi`: mpirun in the master starts ranks in the workers, without ssh.

The master finds the workers in two hostfiles, each in the words of its mpirun, and in variables that name hostfile and
launcher. The launcher is a file, too (`mpi_agent.py`): workers that have no command of their own serve with it. It
reaches pods of the same machine.
"""

from collections.abc import Mapping, Sequence
from os.path import relpath
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from hekla.domain.frameworks import mpi_agent
from hekla.domain.frameworks.base import Framework, Option, Options, Place, PodSettings, missing_roles, task_called
from hekla.domain.sentences import said, sentence

if TYPE_CHECKING:
    from hekla.domain.jobspec import TaskSpec

FOLDER = "etc/mpi"
AGENT = f"{FOLDER}/mpi_agent.py"
OPEN_MPI_HOSTS = f"{FOLDER}/hostfile"
HYDRA_HOSTS = f"{FOLDER}/machinefile"
_AGENT_TEXT = Path(mpi_agent.__file__).read_text(encoding="utf-8")


def _settings(place: Place, options: Options) -> PodSettings:
    if place.task == options["worker"]:
        return PodSettings(files={AGENT: _AGENT_TEXT})
    workers = place.find(options["worker"])
    if workers is None or place.task != options["master"]:
        return PodSettings()
    hosts, slots = place.addresses_of(workers), options["slots"]
    return PodSettings(
        env={"MPI_HOST": ",".join(hosts), **_launcher(place.spec.task(place.task).working_dir)},
        files={
            AGENT: _AGENT_TEXT,
            OPEN_MPI_HOSTS: "".join(f"{host} slots={slots}\n" for host in hosts),
            HYDRA_HOSTS: "".join(f"{host}:{slots}\n" for host in hosts),
        },
    )


def _launcher(working_dir: str) -> dict[str, str]:
    """What mpirun reads of Hydra (MPICH), and of Open MPI before and since its version 5."""
    if _is_outside(working_dir):
        return {}
    # Ranks have the variables of the pod in which they run, as by ssh; those of the master would name its address.
    agent, hydra, open_mpi = (_seen_from(working_dir, path) for path in (AGENT, HYDRA_HOSTS, OPEN_MPI_HOSTS))
    return {
        "HYDRA_HOST_FILE": hydra,
        "HYDRA_ENV": "none",
        "HYDRA_USE_LOCALHOST": "1",
        "HYDRA_LAUNCHER": "rsh",
        "HYDRA_LAUNCHER_EXEC": "python",
        "HYDRA_LAUNCHER_EXTRA_ARGS": agent,
        "OMPI_MCA_orte_default_hostfile": open_mpi,
        "OMPI_MCA_plm_rsh_agent": f"python {agent}",
        "PRTE_MCA_prte_default_hostfile": open_mpi,
        "PRTE_MCA_plm_ssh_agent": f"python {agent}",
    }


def _seen_from(working_dir: str, path: str) -> str:
    """A file of the pod's folder, from the folder below it in which the program starts."""
    return relpath(path, working_dir) if working_dir else path


def _problems(tasks: Sequence["TaskSpec"], options: Options) -> list[str]:
    return missing_roles(["master", "worker"], tasks, options)


def _remarks(tasks: Sequence["TaskSpec"], options: Options) -> list[str]:
    master, worker = (task_called(options[role], tasks) for role in ("master", "worker"))
    found = []
    if worker and any("sshd" in word for word in worker.command):
        found.append(
            said(
                "mpirun does not use ssh here; let “{task}” start python {agent} instead.",
                task=worker.name,
                agent=AGENT,
            )
        )
    if master and _is_outside(master.working_dir):
        found.append(
            said(
                "“{task}” works outside its pod's folder, so mpirun must be told where to look: ~/{folder}.",
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
    return said(
        "ranks stay in the workers that mpirun found when it began, and it ends when one of these goes; a new worker "
        "gets ranks when the master starts again."
    )


MPI = Framework(
    "mpi",
    "Lets mpirun in the master start ranks in the workers.",
    _settings,
    options=(
        Option("master", "master"),
        Option("worker", "worker"),
        Option("slots", 1, number=sentence("a number of ranks"), most=1024),
        Option("port", 22, unheeded=sentence("ranks are started through mpi_agent.py, which needs no port.")),
    ),
    implies=("svc",),
    problems=_problems,
    remarks=_remarks,
    commands=_commands,
    scaling=_scaling,
)
