"""`hcclrank`: a pod's rank in collective communication among Ascend devices; the master's replicas come first.

Volcano writes it as the annotation `hccl/rankIndex`. Pods here have no annotations, so it is in a file and in the
variable RANK, which takes precedence over the annotation in Volcano too. The rank table contains addresses of devices,
which are unknown before a pod has its devices, so none is created.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from hekla.domain.frameworks.base import Framework, Option, Options, PodContext, PodSettings, find_task
from hekla.domain.translation import translate

if TYPE_CHECKING:
    from hekla.domain.task_spec import TaskSpec

FILE = "etc/hccl/rankIndex"


def _settings(context: PodContext, options: Options) -> PodSettings:
    if context.task not in (options["master"], options["worker"]):
        return PodSettings()
    masters = context.find(options["master"])
    first_rank = masters.replicas if masters and context.task != masters.name else 0
    rank = context.spec.task(context.task).env.get("RANK") or str(first_rank + context.index)
    return PodSettings(env={"RANK": rank}, files={FILE: f"{rank}\n"})


def _problems(tasks: Sequence["TaskSpec"], options: Options) -> list[str]:
    if any(find_task(options[role], tasks) for role in ("master", "worker")):
        return []
    names = ", ".join(task.name for task in tasks)
    return [
        translate(
            "No task has the name “{master}” or “{worker}”. Set --master or --worker=NAME ({names}).",
            master=options["master"],
            worker=options["worker"],
            names=names,
        )
    ]


def _remarks(_tasks: Sequence["TaskSpec"], _options: Options) -> list[str]:
    return [
        translate(
            "The annotation hccl/rankIndex and RANK_TABLE_FILE are not created. The rank is in RANK and {file}.",
            file=FILE,
        )
    ]


HCCLRANK = Framework(
    "hcclrank",
    "Tells a pod its number among Ascend devices, as RANK.",
    _settings,
    options=(Option("master", "master"), Option("worker", "worker")),
    problems=_problems,
    remarks=_remarks,
)
