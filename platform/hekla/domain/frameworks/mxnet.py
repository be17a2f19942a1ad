"""`mxnet`: the roles of MXNet's distributed key-value store, in its DMLC_ variables.

Servers and workers find one another through one scheduler.
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

ROLES = ("scheduler", "server", "worker")


def _settings(context: PodContext, options: Options) -> PodSettings:
    tasks = {role: task for role in ROLES if (task := context.find(options[role]))}
    own_role = next((role for role, task in tasks.items() if task.name == context.task), None)
    if own_role is None or len(tasks) < len(ROLES):
        return PodSettings()
    return PodSettings(
        env={
            "DMLC_ROLE": own_role,
            "DMLC_PS_ROOT_URI": context.addresses[tasks["scheduler"].name, 0],
            "DMLC_PS_ROOT_PORT": str(options["port"]),
            "DMLC_NUM_SERVER": str(tasks["server"].replicas),
            "DMLC_NUM_WORKER": str(tasks["worker"].replicas),
            "DMLC_NODE_HOST": context.own_address,
        }
    )


def _problems(tasks: Sequence["TaskSpec"], options: Options) -> list[str]:
    return missing_roles(ROLES, tasks, options) or several_leaders("scheduler", tasks, options)


MXNET = Framework(
    "mxnet",
    "Sets DMLC_ROLE and its like for MXNet's scheduler, servers and workers.",
    _settings,
    options=(*(Option(role, role) for role in ROLES), Option("port", 9091)),
    implies=("svc",),
    problems=_problems,
    scaling=fixed_at_start(gettext_noop("the number of servers and workers (DMLC_NUM_…)")),
)
