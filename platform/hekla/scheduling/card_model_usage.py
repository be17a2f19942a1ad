"""The cards that a queue holds of each model, beside its limits."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from hekla.apps.queues.models import Queue
from hekla.domain.card_resources import card_counts, model_of
from hekla.engine.job_info import ALLOCATED
from hekla.engine.model import ClusterState, QueueSpec
from hekla.engine.policy import SchedulerPolicy


@dataclass(frozen=True, slots=True)
class CardModelUsage:
    """The cards of one model: `held` by pods of the queue and of its child queues, and `most`, its limit."""

    model: str
    held: float
    most: int


def card_model_usage(state: ClusterState, policy: SchedulerPolicy, queue: Queue) -> list[CardModelUsage]:
    """The use of each model that the queue limits or holds; empty if it has no limits, or the policy ignores them."""
    if not queue.card_quota or not any(option.name == "capacity-card" for tier in policy.tiers for option in tier):
        return []
    held, labels = defaultdict[str, float](float), {node.name: node.labels for node in state.nodes}
    names = _with_children(queue.name, {one.name: one for one in state.queues})
    for job in state.jobs:
        for pod in job.pods if job.queue in names else ():
            if pod.status in ALLOCATED and pod.node in labels:
                for resource, count in card_counts(pod.request).items():
                    held[model_of(resource, labels[pod.node])] += count
    models = sorted({*queue.card_quota, *held})
    return [CardModelUsage(model, held[model], queue.card_quota.get(model, 0)) for model in models]


def _with_children(name: str, queues: Mapping[str, QueueSpec]) -> set[str]:
    """The queue and all below it."""
    found, fresh = {name}, {name}
    while fresh:
        fresh = {one.name for one in queues.values() if one.parent in fresh} - found
        found |= fresh
    return found
