"""Who may open the pages of this feature."""

from hekla.apps.accounts.access import DEPARTMENT, PLATFORM_ADMINS, READ, SIGNED_IN, RouteAccess

ROUTES = {
    "departments:list": RouteAccess(SIGNED_IN, impersonation=READ),
    "departments:create": RouteAccess(PLATFORM_ADMINS, PLATFORM_ADMINS),
    "departments:detail": RouteAccess(DEPARTMENT, impersonation=READ),
    "departments:edit": RouteAccess(PLATFORM_ADMINS, PLATFORM_ADMINS),
}
