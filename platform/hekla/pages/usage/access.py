"""Who may open the pages of this feature."""

from hekla.apps.accounts.access import OPEN, TENANT, RouteAccess

ROUTES = {
    "usage:job": RouteAccess(TENANT, impersonation=OPEN),
    "usage:pod": RouteAccess(TENANT, impersonation=OPEN),
}
