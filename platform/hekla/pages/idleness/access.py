"""Who may open the pages of this feature."""

from hekla.apps.accounts.access import OPERATORS, SETS_QUOTAS, RouteAccess

ROUTES = {
    "idleness:platform": RouteAccess(OPERATORS, OPERATORS),
    "idleness:tenant": RouteAccess(SETS_QUOTAS, SETS_QUOTAS),
}
