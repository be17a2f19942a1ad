"""Who may open the pages of this feature."""

from hekla.apps.accounts.access import OPEN, OPERATORS, RouteAccess

ROUTES = {
    "decisions:list": RouteAccess(OPERATORS, impersonation=OPEN),
    "decisions:detail": RouteAccess(OPERATORS, impersonation=OPEN),
    "decisions:job": RouteAccess(OPERATORS, impersonation=OPEN),
    "decisions:file": RouteAccess(OPERATORS, impersonation=OPEN),
}
