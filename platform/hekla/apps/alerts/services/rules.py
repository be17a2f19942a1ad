"""Changes to alert rules by people, and the end of old history."""

import secrets
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from django.db import IntegrityError
from django.db.models import Exists, OuterRef
from django.utils.translation import gettext as _

from hekla.apps.accounts.models import User
from hekla.apps.accounts.services import actor_of
from hekla.apps.alerts import checks, selectors, wake
from hekla.apps.alerts.encryption import COLUMN
from hekla.apps.alerts.models import MAX_REASON, Alert, AlertAction, AlertChange, AlertRule
from hekla.apps.alerts.services.planning import CLEAR, FIRE, plan_undoing
from hekla.apps.event_log import changes
from hekla.apps.event_log.services import Actor, record, unit_of_work
from hekla.apps.tenancy.models import Tenant
from hekla.domain import events
from hekla.domain.alert_rules import CHANGING, AlertActionKind, AlertRuleSpec
from hekla.domain.alerts import AlertReason, AlertState
from hekla.domain.errors import Forbidden, Invalid, Problem, Refused

MOST_RULES, MOST_OF_TENANT = 100, 20
"""Rules about the platform, and about one tenant."""
LONGEST_SILENCE = timedelta(days=30)
_TIDY_AT_ONCE = 5_000


class AlertRuleNameConflict(Refused):
    """A rule of that name exists already."""

    code = "name_taken"


def require_right(tenant: Tenant | None, user: User) -> None:
    """Raises Forbidden unless the person may set rules about the tenant; None: about the platform."""
    if not selectors.may_set(user, tenant):
        raise Forbidden(_("Only tenant admins, operators and platform admins can set alert rules."))


def create(*, spec: AlertRuleSpec, tenant: Tenant | None, user: User, now: datetime) -> tuple[AlertRule, str]:
    """A new rule, and the secret of its webhook (empty without one), which is shown only now.

    Raises Forbidden, Invalid, AlertRuleNameConflict; Refused above the number of rules.
    """
    require_right(tenant, user)
    checks.require(spec, tenant, user)
    try:
        with unit_of_work():
            if AlertRule.objects.filter(tenant=tenant).count() >= (MOST_OF_TENANT if tenant else MOST_RULES):
                raise Refused(_("There are too many alert rules. Delete one first."))
            rule = AlertRule(tenant=tenant, owner=user, created_at=now)
            secret = _write(rule, spec, now)
            rule.save(force_insert=True)
            _tell(rule, events.AlertRuleCreated(name=spec.name), actor_of(user), now)
            wake.evaluate_after_commit()
    except IntegrityError as error:
        raise _name_conflict(spec.name) from error
    return rule, secret


_OF_A_CHANGE = ("owner", "name", "severity", "spec", "is_enabled", "webhook_secret", "changed_at")


def change(
    rule: AlertRule, new: AlertRuleSpec | Mapping[str, Any], *, user: User, now: datetime
) -> tuple[AlertRule, str]:
    """Replace the spec, or only these fields of it. From now on the rule acts with this person's rights.

    Another measure or scope, or turning it off, ends its alerts. Returns what `create` returns. Raises Forbidden,
    Invalid, AlertRuleNameConflict.
    """
    require_right(rule.tenant, user)
    try:
        with unit_of_work():
            rule = changes.locked(rule)
            old = selectors.spec_of(rule)
            spec = new if isinstance(new, AlertRuleSpec) else AlertRuleSpec.parse({**old.document(), **new})
            if spec != old.model_copy(update={"enabled": False}):  # it can be turned off, whatever is wrong with it
                checks.require(spec, rule.tenant, user)
            if old.scope != spec.scope or not spec.enabled:
                _end_alerts(rule, old, now)
            rule.owner, secret = user, _write(rule, spec, now)
            rule.save(update_fields=_OF_A_CHANGE)
            _tell(rule, events.AlertRuleChanged(name=spec.name, changes=_changes(old, spec)), actor_of(user), now)
            wake.evaluate_after_commit()
    except IntegrityError as error:
        raise _name_conflict(rule.name) from error
    return rule, secret


def delete(rule: AlertRule, *, user: User, now: datetime) -> None:
    """Delete a rule with its states and history; what it did stays in the log.

    Raises Forbidden; Refused while it holds something that it would undo.
    """
    require_right(rule.tenant, user)
    with unit_of_work():
        rule = changes.locked(rule)
        if _has_to_undo(rule):
            raise Refused(_("Turn the rule off first, and wait a moment: it then undoes what it changed."))
        _tell(rule, events.AlertRuleDeleted(name=rule.name), actor_of(user), now)
        rule.delete()


def silence(rule: AlertRule, *, until: datetime | None, reason: str, user: User, now: datetime) -> AlertRule:
    """Do and notify nothing until then; None: end the silence. States are still recorded. Raises Forbidden, Invalid.

    What still fires at the end is acted on then.
    """
    require_right(rule.tenant, user)
    reason = " ".join(reason.split())
    if until is not None:
        problems = []
        if not now < until <= now + LONGEST_SILENCE:
            problems.append(
                Problem("until", _("Choose a time within the next %(n)d days.") % {"n": LONGEST_SILENCE.days})
            )
        if not reason or len(reason) > MAX_REASON:
            problems.append(Problem("reason", _("Say in at most %(n)d characters why.") % {"n": MAX_REASON}))
        if problems:
            raise Invalid(problems)
    with unit_of_work():
        rule = changes.locked(rule)
        rule.silenced_until, rule.silence_reason = until, reason if until else ""
        rule.save(update_fields=["silenced_until", "silence_reason"])
        event = events.AlertRuleSilenced(
            name=rule.name, until=until.isoformat() if until else "", reason=rule.silence_reason
        )
        _tell(rule, event, actor_of(user), now)
        wake.evaluate_after_commit()
    return rule


def veto(action: AlertAction, *, user: User, now: datetime) -> None:
    """Forbid a change that the rule has announced. Raises Forbidden; Refused if it does not wait any more."""
    require_right(action.rule.tenant, user)
    with unit_of_work():
        waiting = selectors.changes_that_wait().select_for_update(of=("self",)).filter(pk=action.pk).first()
        if waiting is None:
            raise Refused(_("This action does not wait any more."))
        waiting.abandoned_at, waiting.error = now, _("Vetoed by %s.") % user
        waiting.save(update_fields=["abandoned_at", "error"])
        event = events.AlertActionVetoed(name=action.rule.name, about=action.name, action=action.kind)
        _tell(action.rule, event, actor_of(user), now)


def renew_secret(rule: AlertRule, *, user: User, now: datetime) -> str:
    """Replace the secret that signs the rule's webhooks, and return it. Raises Forbidden, Refused without a webhook."""
    require_right(rule.tenant, user)
    with unit_of_work():
        rule = changes.locked(rule)
        if not rule.webhook_secret:
            raise Refused(_("The rule calls no webhook."))
        secret = _make_secret(rule)
        rule.save(update_fields=["webhook_secret"])
        _tell(rule, events.AlertRuleSecretRenewed(name=rule.name), actor_of(user), now)
    return secret


def tidy(*, now: datetime) -> None:
    """Delete history and actions whose time is over, some at a time."""
    with unit_of_work():
        history = selectors.old_history(now).order_by("pk").values("pk")[:_TIDY_AT_ONCE]
        AlertChange.objects.filter(pk__in=history).delete()
        actions = selectors.old_actions(now).order_by("pk").values("pk")[:_TIDY_AT_ONCE]
        AlertAction.objects.filter(pk__in=actions).delete()


def _write(rule: AlertRule, spec: AlertRuleSpec, now: datetime) -> str:
    """Set the columns that follow from the spec. Returns the secret of a new webhook, else an empty text."""
    document = spec.document()
    rule.is_enabled = document.pop("enabled")
    rule.name, rule.severity, rule.spec, rule.changed_at = spec.name, spec.severity, document, now
    has_webhook = any(action.kind is AlertActionKind.WEBHOOK for action in spec.actions)
    if not has_webhook:
        rule.webhook_secret = b""
    return _make_secret(rule) if has_webhook and not rule.webhook_secret else ""


def _make_secret(rule: AlertRule) -> str:
    secret = f"als_{secrets.token_urlsafe(32)}"
    rule.webhook_secret = COLUMN.encrypt(secret)
    return secret


def _end_alerts(rule: AlertRule, spec: AlertRuleSpec, now: datetime) -> None:
    """End all alerts of a rule that measures something else from now on, or nothing; undo what they changed."""
    ended = list(Alert.objects.select_for_update().filter(rule=rule).order_by("pk"))
    plan_undoing(rule, spec, [alert for alert in ended if alert.is_open and alert.has_acted], now)
    AlertChange.objects.bulk_create(
        AlertChange(
            rule=rule, at=now, subject=alert.subject, name=alert.name, old=alert.state, new=AlertState.NORMAL,
            reason=AlertReason.RULE, value=alert.value, threshold=spec.condition.threshold, clear=spec.condition.clear,
        )
        for alert in ended
        if alert.state != AlertState.NORMAL
    )  # fmt: skip
    Alert.objects.filter(pk__in=[alert.pk for alert in ended]).delete()
    rule.looked_at = rule.watched_since = None


def _has_to_undo(rule: AlertRule) -> bool:
    """Whether an open alert changed something that the rule undoes, or that is being undone."""
    own = AlertAction.objects.filter(rule=rule, kind__in=CHANGING)
    if own.filter(moment=CLEAR, done_at=None, abandoned_at=None).exists():
        return True
    is_open = Alert.objects.filter(rule=rule, episode=OuterRef("episode"), is_open=True)
    return own.filter(Exists(is_open), moment=FIRE, has_changed=True, spec__undo=True).exists()


def _changes(old: AlertRuleSpec, new: AlertRuleSpec) -> dict[str, events.FieldChange]:
    before, after = old.document(), new.document()
    return {
        name: events.FieldChange(old=before[name], new=after[name]) for name in after if before[name] != after[name]
    }


def _name_conflict(name: str) -> AlertRuleNameConflict:
    return AlertRuleNameConflict(_("An alert rule “%s” exists already. Choose another name.") % name, "name")


def _tell(rule: AlertRule, event: events.Event, actor: Actor, now: datetime) -> None:
    record(event, subject=f"alert-rule:{rule.uid}", tenant=rule.tenant_id, topics=["alerts"], actor=actor, at=now)
