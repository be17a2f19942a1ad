"""Who may open the pages of this feature."""

from hekla.apps.accounts.access import ACTS_ON_THE_JOB, OPERATORS, READ, SETS_QUOTAS, TENANT, RouteAccess

ROUTES = {
    "idleness:platform": RouteAccess(OPERATORS, OPERATORS),
    "idleness:job": RouteAccess(TENANT, impersonation=READ),
    "idleness:keep_job": RouteAccess(post=ACTS_ON_THE_JOB),
    "idleness:tenant": RouteAccess(SETS_QUOTAS, SETS_QUOTAS),
}
