"""Who may open the pages of this feature."""

from hekla.apps.accounts.access import NOBODY, SIGNED_IN, RouteAccess

ROUTES = {
    "accounts:start_oidc": RouteAccess(NOBODY),
    "accounts:oidc_back": RouteAccess(NOBODY),
    "accounts:identities": RouteAccess(SIGNED_IN),
    "accounts:connect_identity": RouteAccess(post=SIGNED_IN),
    "accounts:disconnect_identity": RouteAccess(post=SIGNED_IN),
}
