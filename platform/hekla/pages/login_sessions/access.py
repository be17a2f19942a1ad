"""Who may open the pages of this feature."""

from hekla.apps.accounts.access import NOTHING, PLATFORM_ADMINS, SIGNED_IN, RouteAccess

ROUTES = {
    "accounts:visits": RouteAccess(SIGNED_IN),
    "accounts:end_visit": RouteAccess(post=NOTHING),
    "accounts:end_other_visits": RouteAccess(post=SIGNED_IN),
    "accounts:end_visits_of": RouteAccess(post=PLATFORM_ADMINS),
}
