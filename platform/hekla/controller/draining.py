"""Evicts pods that a node still has although it drains: bound by a decision from before, or protected at first."""

import time
from collections import defaultdict
from datetime import datetime

from hekla.apps.clusters import selectors as clusters
from hekla.apps.clusters.models import Cluster
from hekla.apps.jobs import services
from hekla.apps.jobs.models import Pod
from hekla.apps.jobs.services.draining import LATE
from hekla.controller import disruption_budgets
from hekla.controller.lease_context import LeaseContext
from hekla.domain.phases import PLACED_POD_PHASES
from hekla.scheduling.cache import ClusterCache


def evict_late_pods(cluster: Cluster, lease: LeaseContext, cache: ClusterCache, *, now: datetime) -> bool:
    """Evict them, as far as disruption budgets allow it. Returns whether any was evicted. Raises LeaseLost."""
    if not cache.nodes.draining:
        return False
    pods = _late_pods(cache, lease.state.protected_pods(time.monotonic()))
    if not pods:
        return False
    by_node: dict[str, list[int]] = defaultdict(list)
    for pod in disruption_budgets.unprotected(lease, pods, now=now):
        by_node[pod.node].append(pod.pk)
    cache.invalidate(pod.job_id for pod in pods)
    # Read now: the cache may be older than the end of a drain.
    reasons = {
        node.name: node.drain_reason for node in clusters.nodes_of(cluster, list(by_node)) if node.draining_since
    }
    evicted = [
        services.evict_late(cluster.pk, lease.epoch, found, reasons[name], now=now)
        for name, found in by_node.items()
        if name in reasons
    ]
    return any(evicted)


def _late_pods(cache: ClusterCache, protected: frozenset[int]) -> list[Pod]:
    draining = cache.nodes.draining
    return [
        pod
        for job, pods in cache.jobs()
        if not job.is_external
        for pod in pods
        if (since := draining.get(pod.node))
        and pod.phase in PLACED_POD_PHASES
        and not pod.stopping
        and pod.pk not in protected
        and (pod.bound_at is None or pod.bound_at <= since + LATE)
    ]
