"""`mindspore`: a dynamic cluster, in which a scheduler connects workers (and parameter servers, if any).

Each process has one role and uses its pod's address. Workers and servers are numbered in the order of replicas.
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
    several_leaders,
)
from hekla.domain.translation import gettext_noop

if TYPE_CHECKING:
    from hekla.domain.task_spec import TaskSpec

ROLES = {"scheduler": "MS_SCHED", "worker": "MS_WORKER", "server": "MS_PSERVER"}


def _settings(context: PodContext, options: Options) -> PodSettings:
    scheduler, worker, server = (context.find(options[role]) for role in ROLES)
    own_role = next((word for role, word in ROLES.items() if options[role] == context.task), None)
    if own_role is None or scheduler is None or worker is None:
        return PodSettings()
    return PodSettings(
        env={
            "MS_ROLE": own_role,
            "MS_SCHED_HOST": context.addresses[scheduler.name, 0],
            "MS_SCHED_PORT": str(options["port"]),
            "MS_WORKER_NUM": str(worker.replicas),
            **({"MS_SERVER_NUM": str(server.replicas)} if server else {}),
            "MS_WORKER_IP": context.own_address,
            **({} if context.task == scheduler.name else {"MS_NODE_ID": str(context.index)}),
        }
    )


def _problems(tasks: Sequence["TaskSpec"], options: Options) -> list[str]:
    needed = missing_roles(["scheduler", "worker"], tasks, options)
    return needed or several_leaders("scheduler", tasks, options)


MINDSPORE = Framework(
    "mindspore",
    "Sets MS_ROLE, MS_SCHED_HOST and their like for a dynamic cluster of MindSpore.",
    _settings,
    options=(*(Option(role, role) for role in ROLES), Option("port", 8118)),
    implies=("svc",),
    problems=_problems,
    scaling=fixed_at_start(gettext_noop("the number of workers and servers (MS_WORKER_NUM, MS_SERVER_NUM)")),
)
