"""Who may open the pages of this feature."""

from hekla.apps.accounts.access import ACTS_ON_THE_JOB, OPEN, SIGNED_IN, STARTS_ITS_RUNS, TENANT, RouteAccess

ROUTES = {
    "batches:list": RouteAccess(SIGNED_IN, impersonation=OPEN),
    "batches:sweep": RouteAccess(SIGNED_IN, SIGNED_IN, impersonation=OPEN),
    "batches:file": RouteAccess(SIGNED_IN, SIGNED_IN, impersonation=OPEN),
    "batches:detail": RouteAccess(TENANT, impersonation=OPEN),
    "batches:table": RouteAccess(TENANT, impersonation=OPEN),
    "batches:stop": RouteAccess(post=ACTS_ON_THE_JOB, impersonation=OPEN),
    "batches:retry": RouteAccess(post=STARTS_ITS_RUNS, impersonation=OPEN),
}

SOCKETS = {
    "live batches": SIGNED_IN,
    "live batch": TENANT,
}
