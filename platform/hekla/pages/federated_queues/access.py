"""Who may open the pages of this feature."""

from hekla.apps.accounts.access import CHANGES_THE_QUEUE, OPEN, OPERATORS, SIGNED_IN, TENANT, RouteAccess

ROUTES = {
    "spans:list": RouteAccess(SIGNED_IN, impersonation=OPEN),
    "spans:create": RouteAccess(OPERATORS, OPERATORS, impersonation=OPEN),
    "spans:detail": RouteAccess(TENANT, impersonation=OPEN),
    "spans:edit": RouteAccess(OPERATORS, OPERATORS, impersonation=OPEN),
    "spans:delete": RouteAccess(post=CHANGES_THE_QUEUE | {"stranger": "refused"}, impersonation=OPEN),
}
