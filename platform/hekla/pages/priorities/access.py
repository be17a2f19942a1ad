"""Who may open the pages of this feature."""

from hekla.apps.accounts.access import PLATFORM_ADMINS, SIGNED_IN, RouteAccess

ROUTES = {
    "priorities:list": RouteAccess(SIGNED_IN),
    "priorities:create": RouteAccess(PLATFORM_ADMINS, PLATFORM_ADMINS),
    "priorities:edit": RouteAccess(PLATFORM_ADMINS, PLATFORM_ADMINS),
    "priorities:delete": RouteAccess(post=PLATFORM_ADMINS),
}
