"""Who may open the pages of this feature."""

from hekla.apps.accounts.access import ACTS_ON_THE_JOB, HAS_A_TENANT, OPEN, TENANT, WRITES_A_DRAFT, RouteAccess

ROUTES = {
    "jobs_what_if": RouteAccess(post=WRITES_A_DRAFT, impersonation=OPEN),
    "jobs_what_if_take": RouteAccess(post=HAS_A_TENANT, impersonation=OPEN),
    "job_unblock": RouteAccess(TENANT, impersonation=OPEN),
    "job_ease": RouteAccess(post=ACTS_ON_THE_JOB, impersonation=OPEN),
    "jobs_what_if_when": RouteAccess(post=WRITES_A_DRAFT, impersonation=OPEN),
    "reclaim_risk": RouteAccess(TENANT, impersonation=OPEN),
    "job_cost": RouteAccess(TENANT, impersonation=OPEN),
}
