"""Apply the objects of tenants in a cluster (namespaces, network policies, quotas) to match the rows.

Level-triggered: the orders follow from the rows each time. They are repeated periodically, because others may have
changed the objects in the cluster.
"""

import logging
import time
from collections.abc import Collection

from hekla.apps.quotas import selectors as quotas
from hekla.backends.base import BackendError
from hekla.backends.tenancy import Tenancy, TenantOrder
from hekla.controller.lease_context import LeaseContext

log = logging.getLogger(__name__)
HOLDS_SECONDS = 300.0
_AGAIN_SECONDS = 30.0
"""The time until a failed order is tried again."""


def apply_tenancy(lease: LeaseContext, here: dict[int, str]) -> None:
    """Apply the objects of each tenant before its pods are created. A failure does not delay any pod.

    `here`: the tenants with unfinished jobs, their short names by row id.
    """
    tenancy = lease.backend.tenancy
    if tenancy is None:
        return
    _leave(lease, tenancy, set(here.values()))
    due = [order for order in _orders(here) if _is_due(lease, order)]
    for order, error in tenancy.apply_many(due, heartbeat=lease.ensure_leader) if due else ():
        if error is not None:
            log.warning("could not keep what tenant %s has there, will try again: %s", order.tenant, error)
        lease.state.tenancy[order.tenant] = (
            order,
            time.monotonic() + (HOLDS_SECONDS if error is None else _AGAIN_SECONDS),
        )


def _leave(lease: LeaseContext, tenancy: Tenancy, here: set[str]) -> None:
    """Remove the objects of tenants without unfinished jobs. Runs once in a new process, then after such a change."""
    state = lease.state
    if state.has_removed_others and state.tenancy.keys() <= here:
        return
    state.has_removed_others, state.tenancy = (
        True,
        {slug: applied for slug, applied in state.tenancy.items() if slug in here},
    )
    lease.ensure_leader()
    try:
        tenancy.remove_others(here)
    except BackendError as error:
        log.warning("could not take away what tenants without jobs have there: %s", error)


def _orders(tenants: dict[int, str]) -> Collection[TenantOrder]:
    bounds = quotas.of_tenants(tenants) if tenants else {}
    return [TenantOrder(slug, bounds.get(pk, {})) for pk, slug in tenants.items()]


def _is_due(lease: LeaseContext, order: TenantOrder) -> bool:
    applied, until = lease.state.tenancy.get(order.tenant, (None, 0.0))
    return applied != order or time.monotonic() > until
