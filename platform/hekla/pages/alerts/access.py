"""Who may open the pages of this feature."""

from hekla.apps.accounts.access import OPEN, OPERATORS, READ, SETS_QUOTAS, SIGNED_IN, TENANT, RouteAccess

ROUTES = {
    "alerts:list": RouteAccess(SIGNED_IN, impersonation=OPEN),
    "alerts:create": RouteAccess(OPERATORS, OPERATORS),
    "alerts:create_for": RouteAccess(SETS_QUOTAS, SETS_QUOTAS),
    "alerts:detail": RouteAccess(TENANT, impersonation=READ),
    "alerts:edit": RouteAccess(SETS_QUOTAS, SETS_QUOTAS),
    "alerts:enable": RouteAccess(post=SETS_QUOTAS),
    "alerts:silence": RouteAccess(post=SETS_QUOTAS),
    "alerts:renew_secret": RouteAccess(post=SETS_QUOTAS),
    "alerts:veto": RouteAccess(post=SETS_QUOTAS),
    "alerts:delete": RouteAccess(post=SETS_QUOTAS),
}
SOCKETS = {
    "live alerts": SIGNED_IN,
    "live alert": TENANT,
}
