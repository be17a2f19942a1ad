"""Disruption budgets: protected pods are not evicted, and for a while the scheduler chooses other victims.

Budgets are checked before an eviction is recorded, so no eviction is reported that does not happen, and again when it
is applied.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from hekla.apps.clusters import services as clusters
from hekla.apps.clusters.models import Cluster
from hekla.apps.jobs import services
from hekla.apps.jobs.models import Pod
from hekla.controller import external_pods
from hekla.controller.lease_context import LeaseContext
from hekla.controller.observations import key_of
from hekla.controller.state import ProtectedPod, ReconcilerState
from hekla.domain.cluster_objects import BUDGET_KINDS
from hekla.engine import model
from hekla.engine.decisions import Decisions
from hekla.engine.plugins import pdb
from hekla.scheduling import policies
from hekla.scheduling.cache import ClusterCache
from hekla.scheduling.snapshot import Snapshot

SPARED_SECONDS = 60.0
_REPORTED_FOR_SECONDS = 3600.0
"""After this time, the event log reports a protected pod again."""


def policy_reads_budgets(cluster: Cluster) -> bool:
    """Whether the policy chooses victims by budgets. Without that, they are only checked before evictions."""
    return any(option.name == pdb.NAME for tier in policies.in_force(cluster).tiers for option in tier)


def refresh(cluster: Cluster, lease: LeaseContext, cache: ClusterCache, *, now: datetime) -> None:
    """Record the budgets if the policy reads them; only differences are written. Raises LeaseLost."""
    facet, state = lease.backend.budgets, lease.state
    if facet is None or not state.needs_budgets:
        return
    found = facet.list_budgets(frozenset(cache.tenants().values()))
    if found is not state.budgets:
        clusters.observe_objects(cluster, BUDGET_KINDS, found, epoch=lease.epoch, now=now)
        state.budgets = found


def protects_victims(lease: LeaseContext, snapshot: Snapshot, decisions: Decisions, *, now: datetime) -> bool:
    """Whether a budget protects a victim of these decisions; then the engine must choose other victims."""
    pods = [snapshot.pods[eviction.pod] for eviction in decisions.evictions]
    whys = _protected(lease, pods) | external_pods.protected_pods(lease, pods) if pods else {}
    protect(lease, whys, now=now)
    return bool(whys)


def without_protected(lease: LeaseContext, pods: Sequence[Pod], *, now: datetime) -> list[Pod]:
    """These stopping pods without evicted ones that a budget protects. Stops by people ignore budgets."""
    evicted = [pod for pod in pods if pod.evicted]
    spared = {pod.pk for pod in evicted} - {pod.pk for pod in unprotected(lease, evicted, now=now)}
    return [pod for pod in pods if pod.pk not in spared]


def unprotected(lease: LeaseContext, pods: Sequence[Pod], *, now: datetime) -> list[Pod]:
    """These pods, to be evicted, without those that a budget protects."""
    whys = _protected(lease, pods)
    protect(lease, whys, now=now)
    return [pod for pod in pods if pod.pk not in whys]


def _protected(lease: LeaseContext, pods: Sequence[Pod]) -> dict[int, str]:
    """The protected pods among our own: the reason by row."""
    rows = {key_of(pod): pod.pk for pod in pods if not pod.job.is_external}
    budgets = lease.backend.budgets if rows else None
    if budgets is None:
        return {}
    found = budgets.protected(list(rows), heartbeat=lease.ensure_leader)
    return {rows[key]: why for key, why in found.items()}


def protect(lease: LeaseContext, whys: Mapping[int, str], *, now: datetime) -> None:
    """Cancel the evictions of these rows, and try none again for a minute. New reasons go to the event log.

    All nominations are dropped, because they count on the resources of evicted pods.
    """
    if not whys:
        return
    spared = lease.state.protected
    reported = {pk for pk, why in whys.items() if pk in spared and spared[pk].why == why}
    services.block_evictions(lease.cluster_id, lease.epoch, whys, logged=reported, now=now)
    lease.state.nominated = {}
    spared |= {pk: ProtectedPod(why, time.monotonic() + SPARED_SECONDS) for pk, why in whys.items()}


def mark_protected(state: model.ClusterState, own: ReconcilerState) -> model.ClusterState:
    """The cluster state with the presently protected pods marked as not preemptable."""
    moment = time.monotonic()
    own.protected = {pk: one for pk, one in own.protected.items() if one.until > moment - _REPORTED_FOR_SECONDS}
    protected = set(map(str, own.protected_pods(moment)))
    return replace(state, jobs=tuple(_with_protected(job, protected) for job in state.jobs)) if protected else state


def _with_protected(job: model.PodGroupSpec, protected: set[str]) -> model.PodGroupSpec:
    if not any(task.uid in protected for task in job.pods):
        return job
    tasks = (replace(task, preemptable=False) if task.uid in protected else task for task in job.pods)
    return replace(job, pods=tuple(tasks))
