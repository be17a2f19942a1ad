"""`xgboost`: the variables of torch.distributed, and the workers' addresses."""

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
from hekla.domain.frameworks.pytorch import ALL, PYTORCH
from hekla.domain.translation import gettext_noop

if TYPE_CHECKING:
    from hekla.domain.task_spec import TaskSpec


def _settings(context: PodContext, options: Options) -> PodSettings:
    env = PYTORCH.settings(context, {**options, "nnodes": ALL}).env
    workers = context.find(options["worker"])
    if not env or workers is None:
        return PodSettings(env=env)
    workers_env = {"WORKER_PORT": str(options["port"]), "WORKER_ADDRS": ",".join(context.addresses_of(workers))}
    return PodSettings(env={**env, **workers_env})


def _problems(tasks: Sequence["TaskSpec"], options: Options) -> list[str]:
    return missing_roles(["master"], tasks, options)


XGBOOST = Framework(
    "xgboost",
    "Sets MASTER_ADDR, MASTER_PORT, WORLD_SIZE, RANK, WORKER_ADDRS and WORKER_PORT for XGBoost.",
    _settings,
    options=(Option("master", "master"), Option("worker", "worker"), Option("port", 9999)),
    implies=("svc",),
    problems=_problems,
    scaling=fixed_at_start(gettext_noop("WORLD_SIZE, RANK and WORKER_ADDRS")),
)
