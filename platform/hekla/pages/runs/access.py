"""Who may open the pages of this feature. Each job in the address is checked: the page is 404 outside one's tenants."""

from hekla.apps.accounts.access import OPEN, SIGNED_IN, TENANT, RouteAccess

ROUTES = {
    "runs:compare": RouteAccess(TENANT, impersonation=OPEN),
    "runs:table": RouteAccess(TENANT, impersonation=OPEN),
}

SOCKETS = {"live comparison": SIGNED_IN}
"""Without jobs in the address, it shows nothing of anybody."""
