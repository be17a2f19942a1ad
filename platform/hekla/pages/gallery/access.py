"""Who may open the pages of this feature."""

from hekla.apps.accounts.access import MANAGES_MEMBERS, OPEN, PUBLISHES, SIGNED_IN, TENANT, RouteAccess

ROUTES = {
    "gallery:list": RouteAccess(SIGNED_IN, impersonation=OPEN),
    "gallery:publish": RouteAccess(PUBLISHES, PUBLISHES, impersonation=OPEN),
    "gallery:template": RouteAccess(TENANT, TENANT, impersonation=OPEN),
    "gallery:withdraw": RouteAccess(post=MANAGES_MEMBERS, impersonation=OPEN),
}
