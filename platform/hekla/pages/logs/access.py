"""Who may open the pages of this feature."""

from hekla.apps.accounts.access import OPEN, TENANT, RouteAccess

ROUTES = {
    "live:download_logs": RouteAccess(TENANT, impersonation=OPEN),
    "live:search_log": RouteAccess(TENANT, impersonation=OPEN),
    "live:evidence": RouteAccess(TENANT, impersonation=OPEN),
    "live:results": RouteAccess(TENANT, impersonation=OPEN),
    "live:download_file": RouteAccess(TENANT, impersonation=OPEN),
    "live:download_log": RouteAccess(TENANT, impersonation=OPEN),
}

SOCKETS = {
    "logs": TENANT,
}
