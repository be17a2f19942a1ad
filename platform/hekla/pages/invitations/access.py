"""Who may open the pages of this feature."""

from hekla.apps.accounts.access import ANYBODY, GIVES_ROLES, JOINS, MANAGES_MEMBERS, RouteAccess

ROUTES = {
    "invitations:list": RouteAccess(MANAGES_MEMBERS, MANAGES_MEMBERS),
    "invitations:import": RouteAccess(GIVES_ROLES, GIVES_ROLES),
    "invitations:resend": RouteAccess(post=MANAGES_MEMBERS),
    "invitations:revoke": RouteAccess(post=MANAGES_MEMBERS),
    "invitations:sign_up": RouteAccess(ANYBODY, ANYBODY),
    "invitations:accept": RouteAccess(post=JOINS),
}
