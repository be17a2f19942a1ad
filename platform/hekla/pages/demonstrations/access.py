"""Who may open the pages of this feature."""

from hekla.apps.accounts.access import OPEN, OPERATORS, SIGNED_IN, SUBMITS, RouteAccess

ROUTES = {
    "demonstrations:list": RouteAccess(SIGNED_IN, impersonation=OPEN),
    "demonstrations:detail": RouteAccess(SIGNED_IN, impersonation=OPEN),
    "demonstrations:remove_workload": RouteAccess(post=OPERATORS, impersonation=OPEN),
    "demonstrations:start": RouteAccess(post=SUBMITS, impersonation=OPEN),
}

SOCKETS = {
    "live demonstration": SIGNED_IN,
}
