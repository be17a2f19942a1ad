"""Who may open the pages of this feature."""

from hekla.apps.accounts.access import OPEN, READ, REMINDS, SIGNED_IN, TENANT, RouteAccess, who

SEES_CAPACITY = who(rest="absent", manager="ok", operator="ok", platform_admin="ok")
ROUTES = {
    "operations:overview": RouteAccess(SIGNED_IN, impersonation=READ),
    "operations:arrange": RouteAccess(post=SIGNED_IN, impersonation=OPEN),
    "operations:overview_file": RouteAccess(SIGNED_IN, impersonation=READ),
    "operations:gpu_time": RouteAccess(SIGNED_IN, impersonation=READ),
    "operations:gpu_time_file": RouteAccess(SIGNED_IN, impersonation=READ),
    "operations:holdings": RouteAccess(SIGNED_IN, impersonation=READ),
    "operations:queues": RouteAccess(SIGNED_IN, impersonation=READ),
    "operations:queues_file": RouteAccess(SIGNED_IN, impersonation=READ),
    "operations:nodes": RouteAccess(SEES_CAPACITY, impersonation=READ),
    "operations:wall": RouteAccess(SEES_CAPACITY, impersonation=READ),
    "operations:wall_state": RouteAccess(SEES_CAPACITY, impersonation=READ),
    **dict.fromkeys(
        (
            *("operations:waiting", "operations:waiting_file", "operations:waiting_now"),
            *("operations:failures", "operations:failures_file", "operations:counted"),
        ),
        RouteAccess(SIGNED_IN, impersonation=READ),
    ),
    "operations:sessions": RouteAccess(SIGNED_IN, impersonation=READ),
    "operations:sessions_file": RouteAccess(SIGNED_IN, impersonation=READ),
    "operations:waste": RouteAccess(SIGNED_IN, impersonation=READ),
    "operations:cost": RouteAccess(SIGNED_IN, impersonation=READ),
    "operations:cost_file": RouteAccess(SIGNED_IN, impersonation=READ),
    "operations:cost_pods": RouteAccess(SIGNED_IN, impersonation=READ),
    "operations:stalled": RouteAccess(SIGNED_IN, impersonation=READ),
    "operations:stalled_of": RouteAccess(TENANT, impersonation=READ),
    "operations:remind": RouteAccess(post=REMINDS),
}
SOCKETS = {"live operations": SIGNED_IN}
