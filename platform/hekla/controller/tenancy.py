"""What tenants are to have in a cluster beside their pods, kept there as the rows say.

Level-triggered: what is ordered follows from the rows each time, and is ordered again from time to time, since somebody
may have changed it in the cluster.
"""

import logging
import time
from collections.abc import Collection

from hekla.apps.quotas import selectors as quotas
from hekla.backends.base import BackendError
from hekla.backends.tenancy import Tenancy, TenantOrder
from hekla.controller.lease_context import LeaseContext
from hekla.scheduling.cache import ClusterCache

log = logging.getLogger(__name__)
HOLDS_SECONDS = 300.0
_AGAIN_SECONDS = 30.0
"""After which what could not be done is tried again."""


def apply_tenancy(lease: LeaseContext, cache: ClusterCache) -> None:
    """Before pods are made: what is around those of each tenant. One that cannot be kept now keeps no pod back."""
    tenancy = lease.backend.tenancy
    if tenancy is None:
        return
    here = cache.tenants()
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
    """Tenants whose last job is over need nothing any more; whom an earlier controller kept is asked once."""
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
