"""Who may open the pages of this feature."""

from hekla.apps.accounts.access import MANAGES_MEMBERS, OPEN, SIGNED_IN, RouteAccess

ROUTES = {
    "jobs:presets": RouteAccess(SIGNED_IN, impersonation=OPEN),
    "jobs:former_presets": RouteAccess(SIGNED_IN, impersonation=OPEN),
    "jobs:rename_preset": RouteAccess(post=MANAGES_MEMBERS, impersonation=OPEN),
    "jobs:choose_preset": RouteAccess(post=MANAGES_MEMBERS, impersonation=OPEN),
    "jobs:delete_preset": RouteAccess(post=MANAGES_MEMBERS, impersonation=OPEN),
    "jobs:submit": RouteAccess(SIGNED_IN, SIGNED_IN, impersonation=OPEN),
    "jobs:submit_yaml": RouteAccess(SIGNED_IN, SIGNED_IN, impersonation=OPEN),
}
