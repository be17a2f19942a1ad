"""Who may open the pages of this feature."""

from hekla.apps.accounts.access import READ, SETS_TENANT_QUOTAS, TENANT, RouteAccess

ROUTES = {
    "tenancy:files": RouteAccess(TENANT, SETS_TENANT_QUOTAS, impersonation=READ),
}
