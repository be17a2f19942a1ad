"""Who may open the pages of this feature."""

from hekla.apps.accounts.access import ACTS_ON_THE_JOB, OPEN, SIGNED_IN, TENANT, RouteAccess

ROUTES = {
    "flows:list": RouteAccess(SIGNED_IN, impersonation=OPEN),
    "flows:start": RouteAccess(SIGNED_IN, SIGNED_IN, impersonation=OPEN),
    "flows:detail": RouteAccess(TENANT, impersonation=OPEN),
    "flows:stop": RouteAccess(post=ACTS_ON_THE_JOB, impersonation=OPEN),
    "flows:delete": RouteAccess(post=ACTS_ON_THE_JOB, impersonation=OPEN),
    "flows:manifest": RouteAccess(TENANT, impersonation=OPEN),
    "flows:templates": RouteAccess(SIGNED_IN, impersonation=OPEN),
    "flows:new_template": RouteAccess(SIGNED_IN, SIGNED_IN, impersonation=OPEN),
    "flows:template": RouteAccess(TENANT, impersonation=OPEN),
    "flows:edit_template": RouteAccess(TENANT, TENANT, impersonation=OPEN),
    "flows:delete_template": RouteAccess(post=ACTS_ON_THE_JOB, impersonation=OPEN),
    "flows:submit_template": RouteAccess(post=TENANT, impersonation=OPEN),
    "flows:template_manifest": RouteAccess(TENANT, impersonation=OPEN),
}

SOCKETS = {
    "live flow": TENANT,
    "live flows": SIGNED_IN,
}
