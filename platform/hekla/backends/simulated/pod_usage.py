"""The usage of simulated pods: a part of their requests, and the work on GPUs that their variables describe.

The running pods of a task share its work equally, so each of more pods has less to do.
"""

from collections import Counter
from collections.abc import Collection, Iterable
from datetime import UTC, datetime

from hekla.backends.base import PodKey, PodMetrics
from hekla.backends.simulated.config import SimulatedConfig
from hekla.backends.simulated.pod_plan import PodPlan

_MILLI = 1000


def usage_of_pods(
    config: SimulatedConfig, running: Collection[PodPlan], wanted: Collection[PodKey], at: float
) -> list[PodMetrics]:
    """The usage of the wanted pods among these. `running`: all running pods of the cluster with described usage."""
    sharers = Counter(map(_task, running))
    return list(_usage(config, (plan for plan in running if plan.key in wanted), sharers, at))


def _usage(
    config: SimulatedConfig, plans: Iterable[PodPlan], sharers: Counter[tuple[str, str]], at: float
) -> Iterable[PodMetrics]:
    for plan in plans:
        cpu_seconds = plan.cpu / _MILLI * config.pod_usage * max(at - plan.runs_at, 0.0)
        busy = min((plan.gpu_load or 0.0) / sharers[_task(plan)], plan.cards)
        memory = int(plan.memory * config.pod_usage)
        yield PodMetrics(plan.key, datetime.fromtimestamp(at, tz=UTC), cpu_seconds, memory, busy, None)


def _task(plan: PodPlan) -> tuple[str, str]:
    return plan.key.job, plan.key.task
