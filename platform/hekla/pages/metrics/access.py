"""Who may open the pages of this feature."""

from hekla.apps.accounts.access import NOBODY, RouteAccess

ROUTES = {
    "metrics": RouteAccess(NOBODY),  # but for programs with the token of `HEKLA_METRICS_TOKEN`, where it is set
}
