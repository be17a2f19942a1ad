"""Who may open the pages of this feature."""

from hekla.apps.accounts.access import READ, SIGNED_IN, RouteAccess

ROUTES = {
    "operations:gpu_time": RouteAccess(SIGNED_IN, impersonation=READ),
    "operations:gpu_time_file": RouteAccess(SIGNED_IN, impersonation=READ),
    "operations:holdings": RouteAccess(SIGNED_IN, impersonation=READ),
    "operations:queues": RouteAccess(SIGNED_IN, impersonation=READ),
    "operations:queues_file": RouteAccess(SIGNED_IN, impersonation=READ),
    "operations:waste": RouteAccess(SIGNED_IN, impersonation=READ),
}
