"""Who may open the pages of this feature."""

from hekla.apps.accounts.access import OPEN, TENANT, RouteAccess

ROUTES = {
    "files:preview": RouteAccess(TENANT, impersonation=OPEN),
    "files:archive": RouteAccess(TENANT, impersonation=OPEN),
    "files:image": RouteAccess(TENANT, impersonation=OPEN),
}
