"""Who may open the pages of this feature."""

from hekla.apps.accounts.access import OPEN, SIGNED_IN, RouteAccess

ROUTES = {
    "design": RouteAccess(SIGNED_IN, impersonation=OPEN),
}
