"""Who may open the pages of this feature."""

from hekla.apps.accounts.access import CHANGES_THE_QUEUE, OPEN, OPERATORS, SIGNED_IN, TENANT, RouteAccess

ROUTES = {
    "federated_queues:list": RouteAccess(SIGNED_IN, impersonation=OPEN),
    "federated_queues:create": RouteAccess(OPERATORS, OPERATORS, impersonation=OPEN),
    "federated_queues:detail": RouteAccess(TENANT, impersonation=OPEN),
    "federated_queues:edit": RouteAccess(OPERATORS, OPERATORS, impersonation=OPEN),
    "federated_queues:delete": RouteAccess(post=CHANGES_THE_QUEUE | {"stranger": "refused"}, impersonation=OPEN),
}
