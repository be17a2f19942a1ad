"""What the pages of alerts show, for a request and for their live views."""

from typing import Any

from django.http import QueryDict

from hekla.apps.accounts.models import User
from hekla.apps.alerts import labels, measures, selectors
from hekla.apps.alerts.models import AlertRule
from hekla.lib import clock
from hekla.pages.alerts.tables import (
    AlertActionsTable,
    AlertHistoryTable,
    AlertRulesFilter,
    AlertRulesTable,
    AlertsTable,
    RuleAlertsTable,
    severity_badge,
)
from hekla.pages.frame.tables import Listing, listing_of

_NO_QUERY = QueryDict()
MOST_OF_HISTORY = 100


def list_for(query: QueryDict, user: User) -> dict[str, Any]:
    """The live part of the list."""
    rules = listing_of(query, AlertRulesTable, selectors.visible_to(user), AlertRulesFilter)
    return list_of(rules, user)


def list_of(rules: Listing, user: User) -> dict[str, Any]:
    """The page of the list with these rules."""
    found = selectors.alerts(user)[:MOST_OF_HISTORY]
    return {
        "rules": rules,
        "alerts": listing_of(_NO_QUERY, AlertsTable, list(found)),
        "may_set_all": selectors.may_set(user, None),
        "tenants": selectors.tenants_with_rules(user),
    }


def detail_of(rule: AlertRule, user: User) -> dict[str, Any]:
    """The page of one rule."""
    now, spec = clock.now(), selectors.spec_of(rule)
    measure = measures.find(spec.measure)
    return {
        "rule": rule,
        "spec": spec,
        "measure": measure,
        "condition": labels.condition(spec),
        "severity": severity_badge(rule.severity),
        "clear": labels.amount(spec.condition.clear, measure.unit),
        "acts": [labels.action(document) for document in rule.spec["actions"]],
        "is_silent": rule.is_silent(now),
        "may_set": selectors.may_set(user, rule.tenant),
        "states": _recent(RuleAlertsTable, selectors.alerts_of(rule)),
        "history": _recent(AlertHistoryTable, selectors.history(rule)),
        "actions": _recent(AlertActionsTable, selectors.actions(rule), may_set=selectors.may_set(user, rule.tenant)),
    }


def _recent(table: Any, found: Any, **facts: bool) -> Listing:  # noqa: ANN401  (a class of tables, and a query of rows)
    return listing_of(_NO_QUERY, table, list(found.select_related("rule")[: table.size]), facts=facts)
