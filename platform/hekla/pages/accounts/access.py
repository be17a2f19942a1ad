"""Who may open the pages of this feature."""

from hekla.apps.accounts.access import OWN_TOKEN, PLATFORM_ADMINS, SIGNED_IN, RouteAccess

ROUTES = {
    "accounts:list": RouteAccess(PLATFORM_ADMINS),
    "accounts:create": RouteAccess(PLATFORM_ADMINS, PLATFORM_ADMINS),
    "accounts:edit": RouteAccess(PLATFORM_ADMINS, PLATFORM_ADMINS),
    "accounts:give_link": RouteAccess(post=PLATFORM_ADMINS),
    "accounts:profile": RouteAccess(SIGNED_IN, SIGNED_IN),
    "accounts:create_token": RouteAccess(post=SIGNED_IN),
    "accounts:revoke_token": RouteAccess(post=OWN_TOKEN),
}
