"""Who may open the pages of this feature."""

from hekla.apps.accounts.access import GIVES_ROLES, READ, RouteAccess

ROUTES = {
    "roles": RouteAccess(GIVES_ROLES, impersonation=READ),
}
