"""Who may open the pages of this feature."""

from hekla.apps.accounts.access import ANYBODY, OPEN, RouteAccess

ROUTES = {
    "health": RouteAccess(ANYBODY, impersonation=OPEN),
    "live": RouteAccess(ANYBODY),
    "ready": RouteAccess(ANYBODY),
}
