"""`horovod`: the settings of `mpi`, and Horovod configured to use MPI.

`horovodrun` connects to workers by ssh, which pods do not have. mpirun starts the ranks instead, as Horovod allows.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from hekla.domain.frameworks.base import Options, PodContext, PodSettings
from hekla.domain.frameworks.mpi import MPI
from hekla.domain.translation import translate

if TYPE_CHECKING:
    from hekla.domain.task_spec import TaskSpec

_OVER_MPI = {"HOROVOD_CONTROLLER": "mpi", "HOROVOD_CPU_OPERATIONS": "mpi"}


def _settings(context: PodContext, options: Options) -> PodSettings:
    has_role = context.task in (options["master"], options["worker"])
    return MPI.settings(context, options) | PodSettings(env=_OVER_MPI if has_role else {})


def _remarks(tasks: Sequence["TaskSpec"], options: Options) -> list[str]:
    with_horovodrun = [task.name for task in tasks if any("horovodrun" in word for word in task.command)]
    return MPI.remarks(tasks, options) + [
        translate("“{task}” runs horovodrun, which needs ssh. Start ranks with mpirun.", task=name)
        for name in with_horovodrun
    ]


HOROVOD = replace(
    MPI,
    name="horovod",
    summary="Lets mpirun in the master start ranks of Horovod in the workers.",
    settings=_settings,
    remarks=_remarks,
)
