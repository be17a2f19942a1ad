"""Who may open the pages of this feature."""

from hekla.apps.accounts.access import NOTHING, PLATFORM_ADMINS, SIGNED_IN, RouteAccess

ROUTES = {
    "accounts:login_sessions": RouteAccess(SIGNED_IN),
    "accounts:end_login_session": RouteAccess(post=NOTHING),
    "accounts:end_other_login_sessions": RouteAccess(post=SIGNED_IN),
    "accounts:end_login_sessions_of": RouteAccess(post=PLATFORM_ADMINS),
}
