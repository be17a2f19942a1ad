"""Who may open the page of this feature."""

from hekla.apps.accounts.access import OPEN, OPERATORS, RouteAccess

ROUTES = {"system:show": RouteAccess(OPERATORS, impersonation=OPEN)}
