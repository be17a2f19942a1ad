"""Who may open the pages of this feature."""

from hekla.apps.accounts.access import OPERATORS, READ, SIGNED_IN, RouteAccess

ROUTES = {
    "prices:list": RouteAccess(SIGNED_IN, impersonation=READ),
    "prices:detail": RouteAccess(SIGNED_IN, impersonation=READ),
    "prices:create": RouteAccess(OPERATORS, OPERATORS),
    "prices:delete": RouteAccess(post=OPERATORS),
}
