"""Pods that a budget of disruptions keeps: they stay, and for a while the scheduler looks for others in their stead."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from hekla.apps.jobs import services
from hekla.apps.jobs.models import Pod
from hekla.backends.budgets import BudgetBackend
from hekla.controller.observations import Hold, Memory, key_of
from hekla.engine import model

SPARED_SECONDS = 60.0


def without_kept(hold: Hold, pods: Sequence[Pod], *, now: datetime) -> list[Pod]:
    """Those of these pods, all to end, that are to end all the same: what people wish is not asked of any budget."""
    evicted = {key_of(pod): pod for pod in pods if pod.evicted}
    if not (evicted and isinstance(hold.backend, BudgetBackend)):
        return list(pods)
    kept = hold.backend.kept(list(evicted), meanwhile=hold.require)
    spare(hold, {evicted[key].pk: why for key, why in kept.items()}, now=now)
    return [pod for pod in pods if key_of(pod) not in kept]


def spare(hold: Hold, whys: Mapping[int, str], *, now: datetime) -> None:
    """Take back the wish that these go, by their rows, and do not wish it again for a minute.

    The room that was kept for others where they are is not kept any more.
    """
    if whys:
        services.spare(hold.cluster_id, hold.epoch, whys, now=now)
        hold.memory.nominated = {}
        hold.memory.spared |= dict.fromkeys(whys, time.monotonic() + SPARED_SECONDS)


def without(state: model.ClusterState, memory: Memory) -> model.ClusterState:
    """The same, with those that are spared now as pods that may not be evicted."""
    moment = time.monotonic()
    memory.spared = {pk: until for pk, until in memory.spared.items() if until > moment}
    if not memory.spared:
        return state
    kept = {str(pk) for pk in memory.spared}
    return replace(state, jobs=tuple(_kept(job, kept) for job in state.jobs))


def _kept(job: model.Job, kept: set[str]) -> model.Job:
    if not any(task.uid in kept for task in job.tasks):
        return job
    tasks = (replace(task, preemptable=False) if task.uid in kept else task for task in job.tasks)
    return replace(job, tasks=tuple(tasks))
