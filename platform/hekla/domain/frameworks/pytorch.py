"""`pytorch`: MASTER_ADDR, WORLD_SIZE and the pod's RANK, as torch.distributed reads them.

The master's replicas have the first ranks. One task may be both: `--master=worker` makes the first worker the master.
With `--nnodes=MIN:MAX` the pods are nodes of torchrun, which assigns ranks itself. They get the rendezvous settings
instead, in the variables for torchrun's options (PET_…), so the command is `torchrun train.py`.
"""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from hekla.domain.frameworks.base import (
    Framework,
    Option,
    Options,
    PodContext,
    PodSettings,
    fixed_at_start,
    missing_roles,
)
from hekla.domain.translation import gettext_noop, translate
from hekla.domain.validation import quote

if TYPE_CHECKING:
    from hekla.domain.task_spec import TaskSpec

ALL = "all"
_NNODES = re.compile(r"([0-9]{1,5})(?::([0-9]{1,5}))?")
_PROCESSES = re.compile(r"[1-9][0-9]{0,3}|auto|cpu|gpu")
_WAITS = gettext_noop("the pods of a gang start together, and torch waits for its master.")


def _settings(context: PodContext, options: Options) -> PodSettings:
    master = context.find(options["master"])
    if master is None or context.task not in (options["master"], options["worker"]):
        return PodSettings()
    if options["nnodes"] != ALL:
        return PodSettings(env=_rendezvous(context, options))
    first_rank = 0 if context.task == master.name else master.replicas
    return PodSettings(
        env={
            "MASTER_ADDR": context.addresses[master.name, 0],
            "MASTER_PORT": str(options["port"]),
            "WORLD_SIZE": str(_pods(context.spec.tasks, options)),
            "RANK": str(first_rank + context.index),
        }
    )


def _rendezvous(context: PodContext, options: Options) -> dict[str, str]:
    """The variables of torchrun's rendezvous. The first pod of the master hosts the store of members.

    If torchrun shares that store with the program (observed in torch 2.8), a pod that joins later never learns from the
    others where to continue. So sharing is disabled.
    """
    keeps = (context.task, context.index) == (options["master"], 0)
    return {
        "PET_NNODES": str(options["nnodes"]),
        "PET_NPROC_PER_NODE": str(options["nproc-per-node"]),
        "PET_RDZV_BACKEND": "c10d",
        "PET_RDZV_ENDPOINT": f"{context.addresses[str(options['master']), 0]}:{options['port']}",
        "PET_RDZV_ID": context.spec.name,
        "PET_RDZV_CONF": f"is_host={int(keeps)}",
        "PET_LOCAL_ADDR": context.own_address,
        "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1",
    }


def _pods(tasks: Sequence["TaskSpec"], options: Options) -> int:
    """The number of pods that take part."""
    return sum(task.replicas for task in tasks if task.name in (options["master"], options["worker"]))


def _problems(tasks: Sequence["TaskSpec"], options: Options) -> list[str]:
    missing = missing_roles(["master"], tasks, options)
    wrong = [] if missing else _wrong_nnodes(str(options["nnodes"]), _pods(tasks, options))
    return [*missing, *wrong, *_wrong_processes(str(options["nproc-per-node"]))]


def _wrong_nnodes(text: str, pods: int) -> list[str]:
    match = _NNODES.fullmatch(text)
    if text == ALL:
        return []
    if match is None:
        return [
            translate(
                "--nnodes must be a number of pods, or a minimum and maximum, for example 2:4, not {given}.",
                given=quote(text),
            )
        ]
    least, most = int(match[1]), int(match[2] or match[1])
    if not 1 <= least <= most or least > pods:
        return [
            translate(
                "--nnodes={given} is not possible. The minimum must be between 1 and {pods} (all pods), and "
                "the maximum not less.",
                given=text,
                pods=pods,
            )
        ]
    return []


def _wrong_processes(text: str) -> list[str]:
    if _PROCESSES.fullmatch(text):
        return []
    return [
        translate(
            "--nproc-per-node must be a number of processes, or auto, cpu or gpu, not {given}.", given=quote(text)
        )
    ]


def _remarks(tasks: Sequence["TaskSpec"], options: Options) -> list[str]:
    match, pods = _NNODES.fullmatch(str(options["nnodes"])), _pods(tasks, options)
    if match and int(match[2] or match[1]) > pods:
        return [
            translate(
                "--nnodes={given} exceeds the current {pods} pods. You can scale the job up.",
                given=match[0],
                pods=pods,
            )
        ]
    if options["nnodes"] == ALL and options["nproc-per-node"] != "1":
        return [translate("--nproc-per-node has no effect without --nnodes. Only torchrun starts several processes.")]
    return []


def _scaling(options: Options) -> str:
    if options["nnodes"] == ALL:
        return fixed_at_start(gettext_noop("WORLD_SIZE and RANK"))(options)
    return translate(
        "torchrun makes a new rendezvous when pods join or leave, within --nnodes={nnodes}. This does not change.",
        nnodes=options["nnodes"],
    )


PYTORCH = Framework(
    "pytorch",
    "Sets MASTER_ADDR, MASTER_PORT, WORLD_SIZE and RANK for torch.distributed, or where torchrun's nodes meet.",
    _settings,
    options=(
        Option("master", "master"),
        Option("worker", "worker"),
        Option("port", 23456),
        Option("nnodes", ALL),
        Option("nproc-per-node", "1"),
        Option("wait-master-enabled", False, unheeded=_WAITS),
        Option("wait-master-timeout", "300", unheeded=_WAITS),
        Option("wait-master-image", "busybox:1.36.1", unheeded=_WAITS),
    ),
    implies=("svc",),
    problems=_problems,
    remarks=_remarks,
    scaling=_scaling,
)
