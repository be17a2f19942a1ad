"""Queries about alert rules, their states, history and actions."""

from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db.models import Q, QuerySet
from django.utils.translation import gettext as _

from hekla.apps import due_work
from hekla.apps.accounts import selectors as accounts
from hekla.apps.accounts.models import User
from hekla.apps.accounts.roles import Permission
from hekla.apps.alerts.models import Alert, AlertAction, AlertChange, AlertRule
from hekla.apps.outboxes import RECENT, OutboxFacts, outbox_facts
from hekla.apps.tenancy import selectors as tenancy
from hekla.apps.tenancy.models import Tenant
from hekla.domain.alert_rules import CHANGING, AlertRuleSpec
from hekla.domain.errors import NotFound

RETENTION = timedelta(days=90)
"""Of the history and of actions that are done."""


def visible_to(user: User) -> QuerySet[AlertRule]:
    """The rules that this person can see: those of their tenants; all for those who see everything. By name."""
    found = AlertRule.objects.select_related("tenant", "owner")
    if not accounts.may(user, Permission.SEE_EVERYTHING):
        found = found.filter(tenant__in=tenancy.where(user, Permission.SEE_TENANT))
    return found.order_by("name", "id")


def get(uid: UUID, user: User) -> AlertRule:
    """One rule. Raises NotFound."""
    rule = visible_to(user).filter(uid=uid).first()
    if rule is None:
        raise NotFound(_("Unknown alert rule."))
    return rule


def spec_of(rule: AlertRule) -> AlertRuleSpec:
    """The spec of a rule, with whether it is enabled now."""
    return AlertRuleSpec.parse({**rule.spec, "enabled": rule.is_enabled})


def may_set(user: User, tenant: Tenant | None) -> bool:
    """Whether the person may create and change rules about the tenant; None: about the platform."""
    if tenant is None:
        return accounts.may(user, Permission.SET_ALERT_RULES)
    return tenancy.may(user, tenant.pk, Permission.SET_ALERT_RULES)


def tenants_with_rules(user: User) -> list[Tenant]:
    """The tenants for which the person may create rules."""
    if accounts.may(user, Permission.SET_ALERT_RULES):
        return list(tenancy.all_tenants().filter(is_active=True))
    ids = tenancy.where(user, Permission.SET_ALERT_RULES)
    return list(tenancy.all_tenants().filter(pk__in=ids))


def alerts(user: User) -> QuerySet[Alert]:
    """The states that are not normal, of the rules that the person can see: open alerts first, the newest first."""
    found = Alert.objects.filter(rule__in=visible_to(user).order_by()).select_related("rule__tenant")
    return found.exclude(state="normal").order_by("-is_open", "-since", "-id")


def alerts_of(rule: AlertRule) -> QuerySet[Alert]:
    """The states of one rule that are not normal, open alerts first."""
    return Alert.objects.filter(rule=rule).exclude(state="normal").order_by("-is_open", "-since", "-id")


def history(rule: AlertRule) -> QuerySet[AlertChange]:
    """The changes of states of a rule, newest first."""
    return AlertChange.objects.filter(rule=rule).order_by("-id")


def actions(rule: AlertRule) -> QuerySet[AlertAction]:
    """What a rule did, newest first."""
    return AlertAction.objects.filter(rule=rule).order_by("-id")


def changes_that_wait() -> QuerySet[AlertAction]:
    """The announced changes that were neither made nor forbidden yet."""
    return _outstanding().filter(kind__in=CHANGING, moment="fire")


def action(uid: UUID, user: User) -> AlertAction:
    """What a rule that the person can see did, or is about to do. Raises NotFound."""
    found = AlertAction.objects.filter(uid=uid, rule__in=visible_to(user).order_by())
    one = found.select_related("rule__tenant", "rule__owner").first()
    if one is None:
        raise NotFound(_("Unknown action."))
    return one


def next_action() -> datetime | None:
    """When the next action is due; None if there is none."""
    return _outstanding().order_by("due_at").values_list("due_at", flat=True).first()


def outbox_counts(now: datetime) -> OutboxFacts:
    """The actions that wait; `abandoned` counts the last day."""
    return outbox_facts(_outstanding(), AlertAction.objects.filter(abandoned_at__gte=now - RECENT), now)


def _outstanding() -> QuerySet[AlertAction]:
    return AlertAction.objects.filter(done_at=None, abandoned_at=None)


def evaluate_work() -> list[QuerySet[Any, Any]]:
    """Enabled rules (see `due_work`)."""
    return [AlertRule.objects.filter(is_enabled=True)]


def act_work() -> list[QuerySet[Any, Any]]:
    """Actions that are due now or soon (see `due_work`)."""
    return [_outstanding().filter(due_at__lte=due_work.horizon())]


def tidy_work() -> list[QuerySet[Any, Any]]:
    """History and actions whose time is over (see `due_work`)."""
    end = due_work.present() - RETENTION
    return [AlertChange.objects.filter(at__lt=end), AlertAction.objects.filter(created_at__lt=end)]


def old_history(now: datetime) -> QuerySet[AlertChange]:
    """The changes whose time is over."""
    return AlertChange.objects.filter(at__lt=now - RETENTION)


def old_actions(now: datetime) -> QuerySet[AlertAction]:
    """The actions whose time is over, done or not."""
    return AlertAction.objects.filter(
        Q(done_at__isnull=False) | Q(abandoned_at__isnull=False), created_at__lt=now - RETENTION
    )
