"""Who may open the pages of this feature."""

from hekla.apps.accounts.access import OPEN, OPERATORS, SEES_ALL, SIGNED_IN, RouteAccess, who

ROUTES = {
    "clusters:nodes": RouteAccess(SIGNED_IN, impersonation=OPEN),
    "clusters:node": RouteAccess(SIGNED_IN, impersonation=OPEN),
    "clusters:policy": RouteAccess(SEES_ALL, OPERATORS, impersonation=OPEN),
    "clusters:list": RouteAccess(OPERATORS, impersonation=OPEN),
    "clusters:create": RouteAccess(OPERATORS, OPERATORS, impersonation=OPEN),
    "clusters:detail": RouteAccess(OPERATORS, impersonation=OPEN),
    "clusters:remove": RouteAccess(post=OPERATORS, impersonation=OPEN),
    "clusters:remove_key": RouteAccess(post=OPERATORS, impersonation=OPEN),
    "clusters:metrics_token": RouteAccess(OPERATORS, OPERATORS, impersonation=OPEN),
    "clusters:cordon": RouteAccess(post=OPERATORS, impersonation=OPEN),
    "clusters:labels": RouteAccess(SIGNED_IN, OPERATORS, impersonation=OPEN),
    "clusters:drain": RouteAccess(OPERATORS, OPERATORS, impersonation=OPEN),
    "clusters:environments": RouteAccess(SIGNED_IN, impersonation=OPEN),
    "clusters:create_environment": RouteAccess(OPERATORS, OPERATORS, impersonation=OPEN),
    "clusters:edit_environment": RouteAccess(OPERATORS, OPERATORS, impersonation=OPEN),
    "clusters:edit": RouteAccess(OPERATORS, OPERATORS, impersonation=OPEN),
}

SOCKETS = {
    "live nodes": SIGNED_IN,
    "live node": SIGNED_IN,
    "live clusters": who(rest="absent", operator="ok", platform_admin="ok"),
    "live cluster": who(rest="absent", operator="ok", platform_admin="ok"),
}
