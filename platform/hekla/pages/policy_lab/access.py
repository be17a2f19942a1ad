"""Who may open the pages of this feature."""

from hekla.apps.accounts.access import OPEN, OPERATORS, RouteAccess

ROUTES = {
    "policy_lab:list": RouteAccess(OPERATORS, impersonation=OPEN),
    "policy_lab:create": RouteAccess(OPERATORS, OPERATORS, impersonation=OPEN),
    "policy_lab:traces": RouteAccess(OPERATORS, OPERATORS, impersonation=OPEN),
    "policy_lab:trace": RouteAccess(OPERATORS, impersonation=OPEN),
    "policy_lab:delete_trace": RouteAccess(post=OPERATORS, impersonation=OPEN),
    "policy_lab:detail": RouteAccess(OPERATORS, impersonation=OPEN),
    "policy_lab:state": RouteAccess(OPERATORS, impersonation=OPEN),
    "policy_lab:cancel": RouteAccess(post=OPERATORS, impersonation=OPEN),
    "policy_lab:delete": RouteAccess(post=OPERATORS, impersonation=OPEN),
}
