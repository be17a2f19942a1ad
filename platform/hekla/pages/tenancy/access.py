"""Who may open the pages of this feature."""

from hekla.apps.accounts.access import MANAGES_MEMBERS, OPEN, PLATFORM_ADMINS, READ, SIGNED_IN, TENANT, RouteAccess

ROUTES = {
    "tenancy:list": RouteAccess(SIGNED_IN, impersonation=READ),
    "tenancy:create": RouteAccess(PLATFORM_ADMINS, PLATFORM_ADMINS),
    "tenancy:switch": RouteAccess(post=TENANT, impersonation=OPEN),
    "tenancy:detail": RouteAccess(TENANT, impersonation=READ),
    "tenancy:edit": RouteAccess(PLATFORM_ADMINS, PLATFORM_ADMINS),
    "tenancy:set_retention": RouteAccess(post=MANAGES_MEMBERS),
    "tenancy:add_member": RouteAccess(post=MANAGES_MEMBERS),
    "tenancy:change_role": RouteAccess(post=MANAGES_MEMBERS),
    "tenancy:remove_member": RouteAccess(post=MANAGES_MEMBERS),
}
