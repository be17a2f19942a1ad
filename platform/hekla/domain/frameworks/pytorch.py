"""`pytorch`: the address of the master, the size of the world and the pod's rank, as torch.distributed reads them.

torchrun is told the same by variables of its own (`PET_…`), a pod being a node to it.

The master's replicas have the first ranks. One task may be both: `--master=worker` makes the first worker the master.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from hekla.domain.frameworks.base import Framework, Option, Options, Place, PodSettings, missing_roles

if TYPE_CHECKING:
    from hekla.domain.jobspec import TaskSpec

_WAITS = "the pods of a gang start together, and torch waits for its master."


def _settings(place: Place, options: Options) -> PodSettings:
    master, worker = place.find(options["master"]), place.find(options["worker"])
    if master is None or place.task not in (options["master"], options["worker"]):
        return PodSettings()
    workers = worker.replicas if worker and worker is not master else 0
    first_rank = 0 if place.task == master.name else master.replicas
    address, port = place.addresses[master.name, 0], str(options["port"])
    size, rank = str(master.replicas + workers), str(first_rank + place.index)
    return PodSettings(
        env={
            "MASTER_ADDR": address,
            "MASTER_PORT": port,
            "WORLD_SIZE": size,
            "RANK": rank,
            "PET_MASTER_ADDR": address,
            "PET_MASTER_PORT": port,
            "PET_RDZV_ENDPOINT": f"{address}:{port}",
            "PET_NNODES": size,
            "PET_NODE_RANK": rank,
        }
    )


def _problems(tasks: Sequence["TaskSpec"], options: Options) -> list[str]:
    return missing_roles(["master"], tasks, options)


PYTORCH = Framework(
    "pytorch",
    "Sets MASTER_ADDR, MASTER_PORT, WORLD_SIZE and RANK for torch.distributed.",
    _settings,
    options=(
        Option("master", "master"),
        Option("worker", "worker"),
        Option("port", 23456),
        Option("wait-master-enabled", False, unheeded=_WAITS),
        Option("wait-master-timeout", "300", unheeded=_WAITS),
        Option("wait-master-image", "busybox:1.36.1", unheeded=_WAITS),
    ),
    implies=("svc",),
    problems=_problems,
)
