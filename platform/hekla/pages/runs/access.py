"""Who may open the pages of this feature. Each job in the address is checked: the page is 404 outside one's tenants."""

from hekla.apps.accounts.access import OPEN, SIGNED_IN, RouteAccess

ROUTES = {
    "runs:compare": RouteAccess(SIGNED_IN, impersonation=OPEN),
    "runs:table": RouteAccess(SIGNED_IN, impersonation=OPEN),
}

SOCKETS = {"live comparison": SIGNED_IN}
"""Without jobs in the address, it shows nothing of anybody."""
