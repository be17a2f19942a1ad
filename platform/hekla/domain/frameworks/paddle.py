"""`paddle`: PaddlePaddle's trainers, in collective mode or, if the job has a task for them, with parameter servers.

The variables are those that `paddle.distributed` reads in a process, and those with which `paddle.distributed.launch`
starts processes. The job's first trainer is the rendezvous.
"""

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

if TYPE_CHECKING:
    from hekla.domain.task_spec import TaskSpec


def _settings(context: PodContext, options: Options) -> PodSettings:
    trainers, servers, port = context.find(options["worker"]), context.find(options["ps"]), options["port"]
    if trainers is None or context.task not in (options["worker"], options["ps"]):
        return PodSettings()
    env = {"PADDLE_TRAINERS_NUM": str(trainers.replicas), "POD_IP": context.own_address, "PADDLE_PORT": str(port)}
    if servers is not None:
        env |= _roles(context, servers, trainers, port)
    if context.task == trainers.name:
        env |= {"PADDLE_TRAINER_ID": str(context.index), **_meeting(context, trainers, options)}
    return PodSettings(env=env)


def _roles(context: PodContext, servers: "TaskSpec", trainers: "TaskSpec", port: str | int) -> dict[str, str]:
    """The variables that fleet reads with parameter servers."""
    return {
        "TRAINING_ROLE": "PSERVER" if context.task == servers.name else "TRAINER",
        "PADDLE_PSERVERS_IP_PORT_LIST": ",".join(context.addresses_of(servers, port)),
        "PADDLE_PSERVER_NUMS": str(servers.replicas),
        "PADDLE_TRAINER_ENDPOINTS": ",".join(context.addresses_of(trainers, port)),
    }


def _meeting(context: PodContext, trainers: "TaskSpec", options: Options) -> dict[str, str]:
    """The variables by which trainers find one another, alone or through the launcher."""
    endpoints = context.addresses_of(trainers, options["port"])
    return {
        "PADDLE_TRAINER_ENDPOINTS": ",".join(endpoints),
        "PADDLE_CURRENT_ENDPOINT": endpoints[context.index],
        "PADDLE_MASTER": context.addresses_of(trainers, options["master-port"])[0],
        "PADDLE_NNODES": str(trainers.replicas),
        "PADDLE_RANK": str(context.index),
        "PADDLE_JOB_ID": context.spec.name,
    }


def _problems(tasks: Sequence["TaskSpec"], options: Options) -> list[str]:
    if options["worker"] == options["ps"]:
        return [translate("--worker and --ps must be two different tasks.")]
    if options["port"] == options["master-port"]:
        return [translate("--port and --master-port must differ: the first trainer listens on both.")]
    return missing_roles(["worker"], tasks, options)


PADDLE = Framework(
    "paddle",
    "Sets PADDLE_TRAINER_ID, PADDLE_TRAINER_ENDPOINTS and their like for PaddlePaddle.",
    _settings,
    options=(Option("worker", "worker"), Option("ps", "ps"), Option("port", 36001), Option("master-port", 36000)),
    implies=("svc",),
    problems=_problems,
    scaling=fixed_at_start(gettext_noop("PADDLE_TRAINERS_NUM and the list of trainers")),
)
