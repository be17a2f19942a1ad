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
from hekla.controller.observations import Hold
from hekla.scheduling.cache import Picture

log = logging.getLogger(__name__)
HOLDS_SECONDS = 300.0
_AGAIN_SECONDS = 30.0
"""After which what could not be done is tried again."""


def keep(hold: Hold, picture: Picture) -> None:
    """Before pods are made: what is around those of each tenant. One that cannot be kept now keeps no pod back."""
    tenancy = hold.backend.tenancy
    if tenancy is None:
        return
    here = picture.tenants()
    _leave(hold, tenancy, set(here.values()))
    due = [order for order in _orders(here) if _is_due(hold, order)]
    for order, error in tenancy.apply_many(due, heartbeat=hold.require) if due else ():
        if error is not None:
            log.warning("could not keep what tenant %s has there, will try again: %s", order.tenant, error)
        hold.memory.kept[order.tenant] = order, time.monotonic() + (HOLDS_SECONDS if error is None else _AGAIN_SECONDS)


def _leave(hold: Hold, tenancy: Tenancy, here: set[str]) -> None:
    """Tenants whose last job is over need nothing any more; whom an earlier controller kept is asked once."""
    memory = hold.memory
    if memory.has_left and memory.kept.keys() <= here:
        return
    memory.has_left, memory.kept = True, {slug: kept for slug, kept in memory.kept.items() if slug in here}
    hold.require()
    try:
        tenancy.remove_others(here)
    except BackendError as error:
        log.warning("could not take away what tenants without jobs have there: %s", error)


def _orders(tenants: dict[int, str]) -> Collection[TenantOrder]:
    bounds = quotas.of_tenants(tenants) if tenants else {}
    return [TenantOrder(slug, bounds.get(pk, {})) for pk, slug in tenants.items()]


def _is_due(hold: Hold, order: TenantOrder) -> bool:
    kept, until = hold.memory.kept.get(order.tenant, (None, 0.0))
    return kept != order or time.monotonic() > until
