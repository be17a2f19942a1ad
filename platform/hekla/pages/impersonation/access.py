"""Who may open the pages of this feature."""

from hekla.apps.accounts.access import NOTHING, PLATFORM_ADMINS, RouteAccess

ROUTES = {
    "accounts:act_for": RouteAccess(PLATFORM_ADMINS, PLATFORM_ADMINS),
    "accounts:end_acting": RouteAccess(post=NOTHING),  # no role impersonates anyone in the test
}
