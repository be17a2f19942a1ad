"""Who may open the pages of this feature."""

from hekla.apps.accounts.access import ANYBODY, READ, SIGNED_IN, RouteAccess, who

_READS = who(rest="absent", tenant_admin="ok", manager="ok", operator="ok", platform_admin="ok")
_OWNS = _READS | {"manager": "refused", "operator": "refused"}

ROUTES = {
    "reports:list": RouteAccess(SIGNED_IN, impersonation=READ),
    "reports:create": RouteAccess(SIGNED_IN, SIGNED_IN),
    "reports:leave": RouteAccess(ANYBODY, ANYBODY),
    "reports:detail": RouteAccess(_READS, impersonation=READ),
    "reports:run": RouteAccess(_READS, impersonation=READ),
    "reports:html": RouteAccess(_READS, impersonation=READ),
    "reports:pdf": RouteAccess(_READS, impersonation=READ),
    "reports:edit": RouteAccess(_OWNS, _OWNS),
    "reports:pause": RouteAccess(post=_OWNS),
    "reports:send": RouteAccess(post=_OWNS),
    "reports:delete": RouteAccess(post=_OWNS),
}
