"""Who may open the pages of this feature."""

from hekla.apps.accounts.access import AUDITS, READ, RouteAccess

ROUTES = {
    "audit": RouteAccess(AUDITS, impersonation=READ),
    "audit_file": RouteAccess(AUDITS, impersonation=READ),
}
