"""Who may open the pages of this feature."""

from hekla.apps.accounts.access import ACTS_ON_THE_JOB, RouteAccess, who

_OWN = who(rest="refused", stranger="absent", tenant_admin="ok")

ROUTES = {
    "workbench:tools": RouteAccess(ACTS_ON_THE_JOB, ACTS_ON_THE_JOB),
    "workbench:session": RouteAccess(ACTS_ON_THE_JOB),
    "workbench:enter": RouteAccess(post=_OWN),
    "workbench:activity": RouteAccess(ACTS_ON_THE_JOB),
    "workbench:people": RouteAccess(ACTS_ON_THE_JOB),
    "workbench:keep": RouteAccess(post=ACTS_ON_THE_JOB),
    "workbench:end": RouteAccess(post=ACTS_ON_THE_JOB),
}
