"""Who may open the pages of this feature."""

from hekla.apps.accounts.access import READ, SETS_QUOTAS, TENANT, RouteAccess

ROUTES = {
    "tenancy:quotas": RouteAccess(TENANT, SETS_QUOTAS, impersonation=READ),
}
