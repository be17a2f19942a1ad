"""Who may open the pages of this feature."""

from hekla.apps.accounts.access import ACTS_ON_THE_JOB, OPEN, RETRIES, SHARES_VIEWS, SIGNED_IN, TENANT, RouteAccess, who

ROUTES = {
    "jobs:list_file": RouteAccess(SIGNED_IN, impersonation=OPEN),
    "jobs:act_on_all": RouteAccess(post=SIGNED_IN, impersonation=OPEN),
    "jobs:compare": RouteAccess(post=SIGNED_IN, impersonation=OPEN),
    "jobs:arrange": RouteAccess(post=SIGNED_IN, impersonation=OPEN),
    "jobs:save_view": RouteAccess(post=SHARES_VIEWS, impersonation=OPEN),
    "jobs:delete_view": RouteAccess(
        post=who(rest="absent", tenant_admin="ok", department_admin="ok", viewer="refused", member="refused"),
        impersonation=OPEN,
    ),
    "jobs:priority": RouteAccess(post=ACTS_ON_THE_JOB, impersonation=OPEN),
    "jobs:list": RouteAccess(SIGNED_IN, impersonation=OPEN),
    "jobs:detail": RouteAccess(TENANT, impersonation=OPEN),
    "jobs:command": RouteAccess(post=ACTS_ON_THE_JOB, impersonation=OPEN),
    "jobs:retry": RouteAccess(post=RETRIES, impersonation=OPEN),
    "jobs:scale": RouteAccess(post=ACTS_ON_THE_JOB, impersonation=OPEN),
    "jobs:delete": RouteAccess(post=ACTS_ON_THE_JOB, impersonation=OPEN),
    "jobs:export": RouteAccess(TENANT, impersonation=OPEN),
    "jobs:manifest": RouteAccess(TENANT, impersonation=OPEN),
    "jobs:timeline": RouteAccess(TENANT, impersonation=OPEN),
    "jobs:pod": RouteAccess(TENANT, impersonation=OPEN),
    "jobs:frozen": RouteAccess(post=ACTS_ON_THE_JOB, impersonation=OPEN),
    "jobs:terminal": RouteAccess(ACTS_ON_THE_JOB),
}

SOCKETS = {
    "terminal": ACTS_ON_THE_JOB,
    "ssh": ACTS_ON_THE_JOB,
    "live job": TENANT,
    "live pod": TENANT,
    "live jobs": SIGNED_IN,
}
