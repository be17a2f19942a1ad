"""Who may open the pages of this feature."""

from hekla.apps.accounts.access import ALREADY_IN, ANYBODY, PLATFORM_ADMINS, SIGNED_IN, RouteAccess

ROUTES = {
    "accounts:sign_in": RouteAccess(ANYBODY, ANYBODY, put=ANYBODY, patch=ALREADY_IN, delete=ALREADY_IN),
    "accounts:sign_out": RouteAccess(post=SIGNED_IN),
    "accounts:use_link": RouteAccess(ANYBODY, ANYBODY),
    "accounts:second_step": RouteAccess(ANYBODY, ANYBODY),
    "accounts:prove": RouteAccess(SIGNED_IN, SIGNED_IN),
    "accounts:second_factor": RouteAccess(SIGNED_IN),
    "accounts:begin_factor": RouteAccess(post=SIGNED_IN),
    "accounts:confirm_factor": RouteAccess(post=SIGNED_IN),
    "accounts:renew_codes": RouteAccess(post=SIGNED_IN),
    "accounts:remove_factor": RouteAccess(post=SIGNED_IN),
    "accounts:add_key": RouteAccess(post=SIGNED_IN),
    "accounts:remove_key": RouteAccess(post=SIGNED_IN),
    "accounts:reset_factor": RouteAccess(post=PLATFORM_ADMINS),
}
