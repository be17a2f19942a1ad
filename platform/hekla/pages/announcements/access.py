"""Who may open the pages of this feature."""

from hekla.apps.accounts.access import OPERATORS, READ, SIGNED_IN, TENANT, RouteAccess

ROUTES = {
    "announcements:list": RouteAccess(SIGNED_IN, impersonation=READ),
    "announcements:create": RouteAccess(OPERATORS, OPERATORS),
    "announcements:withdraw": RouteAccess(post=OPERATORS | {"stranger": "absent"}),
    "announcements:dismiss": RouteAccess(post=TENANT),
}
