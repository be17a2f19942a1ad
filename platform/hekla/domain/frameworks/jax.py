"""`jax`: the address of the coordinator, the number of processes and the pod's own, for jax.distributed.initialize."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from hekla.domain.frameworks.base import Framework, Option, Options, PodContext, PodSettings, fixed_at_start
from hekla.domain.translation import translate

if TYPE_CHECKING:
    from hekla.domain.task_spec import TaskSpec


def _settings(context: PodContext, options: Options) -> PodSettings:
    workers = context.find(options["worker"])
    if workers is None or context.task != workers.name:
        return PodSettings()
    return PodSettings(
        env={
            "COORDINATOR_ADDRESS": context.addresses[workers.name, 0],
            "COORDINATOR_PORT": str(options["port"]),
            "NUM_PROCESSES": str(workers.replicas),
            "PROCESS_ID": str(context.index),
        }
    )


def _problems(tasks: Sequence["TaskSpec"], options: Options) -> list[str]:
    if any(task.name == options["worker"] for task in tasks):
        return []
    names = ", ".join(task.name for task in tasks)
    return [
        translate(
            "No task has the name “{worker}”. Set it with --worker=NAME ({names}).",
            worker=options["worker"],
            names=names,
        )
    ]


JAX = Framework(
    "jax",
    "Sets COORDINATOR_ADDRESS, COORDINATOR_PORT, NUM_PROCESSES and PROCESS_ID for JAX.",
    _settings,
    options=(Option("worker", "worker"), Option("port", 6666)),
    implies=("svc",),
    problems=_problems,
    scaling=fixed_at_start("NUM_PROCESSES"),
)
