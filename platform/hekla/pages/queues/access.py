"""Who may open the pages of this feature."""

from hekla.apps.accounts.access import OPEN, OPERATORS, SIGNED_IN, TENANT, RouteAccess

ROUTES = {
    "queues:list": RouteAccess(SIGNED_IN, impersonation=OPEN),
    "queues:create": RouteAccess(OPERATORS, OPERATORS, impersonation=OPEN),
    "queues:edit": RouteAccess(OPERATORS, OPERATORS, impersonation=OPEN),
    "queues:detail": RouteAccess(TENANT, impersonation=OPEN),
    "queues:share": RouteAccess(TENANT, impersonation=OPEN),
    "queues:set_state": RouteAccess(post=OPERATORS, impersonation=OPEN),
    "queues:preview_new": RouteAccess(post=OPERATORS, impersonation=OPEN),
    "queues:preview": RouteAccess(post=OPERATORS, impersonation=OPEN),
}

SOCKETS = {
    "live queues": SIGNED_IN,
    "live queue": TENANT,
}
