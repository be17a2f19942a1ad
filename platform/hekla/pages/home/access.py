"""Who may open the pages of this feature."""

from hekla.apps.accounts.access import ANYBODY, OPEN, SIGNED_IN, SUBMITS, RouteAccess

ROUTES = {
    "home": RouteAccess(SIGNED_IN, impersonation=OPEN),
    "home_needs": RouteAccess(SIGNED_IN, impersonation=OPEN),
    "home_day": RouteAccess(SIGNED_IN, impersonation=OPEN),
    "favicon": RouteAccess(ANYBODY, impersonation=OPEN),
    "run_example": RouteAccess(post=SUBMITS, impersonation=OPEN),
    "set_language": RouteAccess(post=ANYBODY, impersonation=OPEN),
}

SOCKETS = {
    "live home": SIGNED_IN,
}
