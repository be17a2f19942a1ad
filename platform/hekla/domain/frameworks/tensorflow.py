"""`tensorflow`: TF_CONFIG, the description of the cluster and of the pod's role that TensorFlow reads.

TensorFlow's servers listen on every address of their machine, so pods of the local cluster get different ports. The pod
of a job with a single pod gets none, since TensorFlow then trains alone; nor do pods of tasks without a role.
"""

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

from hekla.domain.frameworks.base import Framework, Option, Options, PodContext, PodSettings, fixed_at_start
from hekla.domain.translation import translate

if TYPE_CHECKING:
    from hekla.domain.task_spec import TaskSpec

ROLES = ("ps", "worker", "chief", "evaluator")


def _settings(context: PodContext, options: Options) -> PodSettings:
    tasks = {role: task for role in ROLES if (task := context.find(options[role]))}
    own_role = next((role for role, task in tasks.items() if task.name == context.task), None)
    if own_role is None or context.spec.replicas == 1:
        return PodSettings()
    cluster = {role: context.servers_of(task, int(options["port"])) for role, task in tasks.items()}
    config = {"cluster": cluster, "task": {"type": own_role, "index": context.index}}
    return PodSettings(env={"TF_CONFIG": json.dumps(config)})


def _problems(tasks: Sequence["TaskSpec"], options: Options) -> list[str]:
    names = {options[role] for role in ROLES}
    if names.isdisjoint(task.name for task in tasks):
        return [
            translate(
                "No task has the name ps, worker, chief or evaluator. Set the roles, for example --worker=trainer."
            )
        ]
    return []


TENSORFLOW = Framework(
    "tensorflow",
    "Sets TF_CONFIG for distributed TensorFlow.",
    _settings,
    options=(*(Option(role, role) for role in ROLES), Option("port", 2222)),
    implies=("svc",),
    problems=_problems,
    scaling=fixed_at_start("TF_CONFIG"),
)
