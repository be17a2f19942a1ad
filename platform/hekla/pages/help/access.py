"""Who may open the pages of this feature."""

from hekla.apps.accounts.access import OPEN, SIGNED_IN, RouteAccess

ROUTES = {
    "help:index": RouteAccess(SIGNED_IN, impersonation=OPEN),
    "help:page": RouteAccess(SIGNED_IN, impersonation=OPEN),
}
