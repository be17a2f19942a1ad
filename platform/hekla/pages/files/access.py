"""Who may open the pages of this feature."""

from hekla.apps.accounts.access import ACTS_ON_THE_JOB, OPEN, TENANT, RouteAccess

ROUTES = {
    "files:edit": RouteAccess(ACTS_ON_THE_JOB, ACTS_ON_THE_JOB, impersonation=OPEN),
    "files:preview": RouteAccess(TENANT, impersonation=OPEN),
    "files:archive": RouteAccess(TENANT, impersonation=OPEN),
    "files:image": RouteAccess(TENANT, impersonation=OPEN),
}
