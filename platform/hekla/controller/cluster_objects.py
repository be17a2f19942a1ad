"""Record the runtime classes, devices and volumes of a cluster, and claims to them, as its backend reports them.

A cluster is asked for volumes once a job mounts a claim, and for devices once a job claims some, or its policy switches
on the check of such claims. Others cost nothing.
"""

from datetime import datetime

from hekla.apps.clusters import services
from hekla.apps.clusters.models import Cluster
from hekla.controller.lease_context import LeaseContext
from hekla.domain.cluster_objects import DEVICE_KINDS, RUNTIME_KINDS, STORAGE_KINDS
from hekla.engine.plugins.predicates import CLAIMS_SWITCH
from hekla.scheduling import policies
from hekla.scheduling.cache import ClusterCache


def policy_needs_devices(cluster: Cluster) -> bool:
    """Whether the policy switches on the check of claims. By default it happens too, for jobs that claim devices."""
    policy = policies.in_force(cluster)
    return any(option.truth(CLAIMS_SWITCH, default=False) for tier in policy.tiers for option in tier)


def refresh(cluster: Cluster, lease: LeaseContext, cache: ClusterCache, *, now: datetime) -> None:
    """Record the devices, volumes and claims if they are needed; only differences are written. Raises LeaseLost."""
    backend, state = lease.backend, lease.state
    tenants = frozenset(cache.tenants().values())
    if backend.objects is not None and (cache.claims_devices or state.needs_devices):
        found = backend.objects.list_objects(tenants)
        if found is not state.devices:
            services.observe_objects(cluster, DEVICE_KINDS, found, epoch=lease.epoch, now=now)
            state.devices = found
    if backend.storage is not None and cache.mounts_claims:
        found = backend.storage.list_objects(tenants)
        if found is not state.storage:
            services.observe_objects(cluster, STORAGE_KINDS, found, epoch=lease.epoch, now=now)
            state.storage = found


def refresh_runtime_classes(cluster: Cluster, lease: LeaseContext, *, now: datetime) -> None:
    """Record the runtime classes; only differences are written. Raises LeaseLost."""
    facet, state = lease.backend.runtime_classes, lease.state
    found = facet.list_runtime_classes() if facet else ()
    if found is not state.runtime_classes:
        services.observe_objects(cluster, RUNTIME_KINDS, found, epoch=lease.epoch, now=now)
        state.runtime_classes = found
