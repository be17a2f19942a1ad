"""Who may open the pages of this feature."""

from hekla.apps.accounts.access import READ, SIGNED_IN, RouteAccess

ROUTES = {
    "operations:gpu_time": RouteAccess(SIGNED_IN, impersonation=READ),
    "operations:gpu_time_file": RouteAccess(SIGNED_IN, impersonation=READ),
    "operations:holdings": RouteAccess(SIGNED_IN, impersonation=READ),
    **dict.fromkeys(
        (
            *("operations:waiting", "operations:waiting_file", "operations:waiting_now"),
            *("operations:failures", "operations:failures_file", "operations:counted"),
        ),
        RouteAccess(SIGNED_IN, impersonation=READ),
    ),
    "operations:waste": RouteAccess(SIGNED_IN, impersonation=READ),
}
