"""Who may open the pages of this feature."""

from hekla.apps.accounts.access import NOBODY, RouteAccess

ROUTES = {
    "metrics": RouteAccess(NOBODY),  # except with the token in `HEKLA_METRICS_TOKEN`, if set
}
