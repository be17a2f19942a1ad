"""Who may open the pages of this feature."""

from hekla.apps.accounts.access import ACTS_ON_THE_JOB, OPEN, SIGNED_IN, STARTS_ITS_RUNS, TENANT, RouteAccess

ROUTES = {
    "schedules:list": RouteAccess(SIGNED_IN, impersonation=OPEN),
    "schedules:create": RouteAccess(SIGNED_IN, SIGNED_IN, impersonation=OPEN),
    "schedules:create_yaml": RouteAccess(SIGNED_IN, SIGNED_IN, impersonation=OPEN),
    "schedules:detail": RouteAccess(TENANT, impersonation=OPEN),
    "schedules:edit": RouteAccess(STARTS_ITS_RUNS, STARTS_ITS_RUNS, impersonation=OPEN),
    "schedules:suspend": RouteAccess(post=ACTS_ON_THE_JOB, impersonation=OPEN),
    "schedules:run": RouteAccess(post=STARTS_ITS_RUNS, impersonation=OPEN),
    "schedules:delete": RouteAccess(post=ACTS_ON_THE_JOB, impersonation=OPEN),
    "schedules:manifest": RouteAccess(TENANT, impersonation=OPEN),
}

SOCKETS = {
    "live schedules": SIGNED_IN,
    "live schedule": TENANT,
}
