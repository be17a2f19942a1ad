"""Does what rules planned. A worker claims an action by postponing its due time, so a worker that dies loses none.

Changes of nodes, queues and jobs are stored together with their result, so they happen once, and only while their
alert is open. Webhooks may come twice, with the same id. The rights of the rule's owner are checked here again: roles
change.
"""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Case, F, Q, Value, When
from django.utils.translation import gettext as _

from hekla.apps.accounts.models import User
from hekla.apps.accounts.services import actor_of
from hekla.apps.alerts import selectors
from hekla.apps.alerts.models import MAX_FAULT, AlertAction
from hekla.apps.alerts.outgoing import call_webhook, notify
from hekla.apps.alerts.owner import acting_owner, record_of
from hekla.apps.alerts.services.planning import FIRE
from hekla.apps.alerts.services.undoing import (
    is_label_as_left,
    is_node_as_left,
    is_queue_as_left,
    own_change,
    pass_on,
    still_fires,
)
from hekla.apps.clusters import selectors as clusters
from hekla.apps.clusters import services as cluster_services
from hekla.apps.clusters.models import Node
from hekla.apps.event_log.services import unit_of_work
from hekla.apps.jobs import selectors as jobs
from hekla.apps.jobs import services as job_services
from hekla.apps.notifications.outgoing import NotificationNotSent
from hekla.apps.queues import selectors as queues
from hekla.apps.queues import services as queue_services
from hekla.apps.queues.models import Queue
from hekla.domain import events
from hekla.domain.alert_rules import CHANGING, AlertActionKind
from hekla.domain.errors import Forbidden, HeklaError, NotFound
from hekla.domain.policies import LifecycleAction
from hekla.lib.backoff import backoff_delay
from hekla.lib.encryption import DecryptionError

log = logging.getLogger(__name__)
MOST_ATTEMPTS = 12
_BUSY_SECONDS = 6.0
_SILENT_PAUSE = timedelta(minutes=1)
_URGENCY = Case(
    When(~Q(kind=AlertActionKind.WEBHOOK), then=Value(0)), When(rule__tenant=None, then=Value(1)), default=Value(2)
)
"""Receivers of webhooks may be slow: nothing else waits for them, and the platform for none of those of tenants."""


@dataclass(frozen=True, slots=True)
class ActionResult:
    """`code`: of `labels.RESULTS`. `has_changed`: whether it changed a node, a queue or a job."""

    code: str
    has_changed: bool = False


_DONE, _ALREADY, _NOTHING = ActionResult("done"), ActionResult("already"), ActionResult("nothing")
_CHANGED = ActionResult("done", has_changed=True)


def act_due(*, now: datetime) -> int:
    """Do what is due, for a few seconds at most. Returns how many actions were done."""
    done, deadline = 0, time.monotonic() + _BUSY_SECONDS
    while time.monotonic() < deadline and (action := _claim(now)):
        done += _act(action, now)
    return done


def _claim(now: datetime) -> AlertAction | None:
    """The next action that is due. If it is not done until its new due time, it is done again."""
    with unit_of_work():
        open_ = AlertAction.objects.filter(done_at=None, abandoned_at=None, due_at__lte=now)
        found = open_.select_for_update(skip_locked=True, of=("self",)).order_by(_URGENCY, "due_at", "pk").first()
        if found is None:
            return None
        found.attempts += 1
        found.due_at = now + backoff_delay(found.attempts)
        found.save(update_fields=["attempts", "due_at"])
    return AlertAction.objects.select_related("rule__owner", "rule__tenant").get(pk=found.pk)


def _act(action: AlertAction, now: datetime) -> bool:
    if _waits_for_silence(action, now):
        return False
    try:
        _require_owner(action)
        if action.kind == AlertActionKind.WEBHOOK:
            call_webhook(action, now=now)  # outside any transaction: the receiver may be slow
        with unit_of_work(), acting_owner(action.rule):
            if not _lock(action):
                return False
            result = _PERFORM[AlertActionKind(action.kind)](action, now)
            if result.code == _DONE.code:
                _record(action, "", now)
            AlertAction.objects.filter(pk=action.pk).update(
                done_at=now, result=result.code, has_changed=result.has_changed, error=""
            )
    except (NotificationNotSent, DecryptionError) as error:
        return _failed(action, str(error), now, is_final=action.attempts >= MOST_ATTEMPTS)
    except HeklaError as error:
        # The name of a receiver may be unknown for a while.
        may_help = action.kind == AlertActionKind.WEBHOOK and not isinstance(error, Forbidden)
        return _failed(action, error.message, now, is_final=not may_help or action.attempts >= MOST_ATTEMPTS)
    except Exception:  # it must not come again and again, and the others are to be done too
        log.exception("action %s of alert rule %s failed", action.uid, action.rule.uid)
        why = _("It failed. The log of the console says why.")
        return _failed(action, why, now, is_final=action.attempts >= MOST_ATTEMPTS)
    return True


def _waits_for_silence(action: AlertAction, now: datetime) -> bool:
    """Postpone a change whose rule was silenced after it was planned: it was announced, and somebody may be at work.

    Only for a moment, as people can end the silence early. If the alert still fires then, the change is made.
    """
    silent_until = action.rule.silenced_until
    if silent_until is None or silent_until <= now or action.moment != FIRE or action.kind not in CHANGING:
        return False
    own = AlertAction.objects.filter(pk=action.pk, done_at=None, abandoned_at=None)
    own.update(due_at=min(silent_until, now + _SILENT_PAUSE), attempts=F("attempts") - 1)
    return True


def _lock(action: AlertAction) -> bool:
    """Whether it is still to be done. Until the end of the transaction, nobody else does it."""
    open_ = AlertAction.objects.filter(pk=action.pk, done_at=None, abandoned_at=None)
    return open_.select_for_update(of=("self",)).order_by("pk").first() is not None


def _require_owner(action: AlertAction) -> None:
    """Raises Forbidden unless the owner may still set such a rule."""
    if not selectors.may_set(action.rule.owner, action.rule.tenant):
        raise Forbidden(_("%s may not set this rule any more. Somebody else must save it.") % action.rule.owner)


def _failed(action: AlertAction, why: str, now: datetime, *, is_final: bool) -> bool:
    with unit_of_work(), acting_owner(action.rule):
        abandoned = {"abandoned_at": now} if is_final else {}
        AlertAction.objects.filter(pk=action.pk).update(error=why[:MAX_FAULT], **abandoned)
        if is_final:
            _record(action, why, now)
        elif action.kind == AlertActionKind.WEBHOOK:  # the other ones to this receiver would fail, too
            others = AlertAction.objects.filter(rule=action.rule_id, kind=action.kind, done_at=None, abandoned_at=None)
            others.filter(due_at__lt=action.due_at).update(due_at=action.due_at)
    return False


def _record(action: AlertAction, error: str, now: datetime) -> None:
    facts = {"name": action.rule.name, "about": action.name, "action": action.kind, "moment": action.moment}
    record_of(action.rule, events.AlertActed.model_validate({**facts, "error": error}), now)


def _notify(action: AlertAction, now: datetime) -> ActionResult:
    return _DONE if notify(action, now=now) else _NOTHING


def _posted(_action: AlertAction, _now: datetime) -> ActionResult:
    return _DONE


def _cordon(action: AlertAction, now: datetime) -> ActionResult:
    if action.moment != FIRE:
        return _uncordon(action, now)
    if not still_fires(action):
        return _NOTHING
    node = _node(action)
    if node.is_cordoned:
        return _ALREADY
    cluster_services.cordon(node, cordoned=True, actor=actor_of(action.rule.owner), now=now)
    return _CHANGED


def _uncordon(action: AlertAction, now: datetime) -> ActionResult:
    fire = own_change(action)
    if fire is None:
        return _NOTHING
    node = _node(fire)
    if not node.is_cordoned:
        return _ALREADY
    if not is_node_as_left(node, fire) or pass_on(fire, Q(subject=fire.subject)):
        return _NOTHING
    cluster_services.cordon(node, cordoned=False, actor=actor_of(action.rule.owner), now=now)
    return _CHANGED


def _label_node(action: AlertAction, now: datetime) -> ActionResult:
    if action.moment != FIRE:
        return _remove_label(action, now)
    if not still_fires(action):
        return _NOTHING
    node, key, value = _node(action), action.spec["label"], action.spec["value"]
    if node.labels.get(key) == value:
        return _ALREADY
    cluster_services.label_node(node, {key: value}, actor=actor_of(action.rule.owner), now=now)
    return _CHANGED


def _remove_label(action: AlertAction, now: datetime) -> ActionResult:
    """The label that was set: the rule may name another one now."""
    fire = own_change(action)
    if fire is None:
        return _NOTHING
    node, key, value = _node(fire), fire.spec["label"], fire.spec["value"]
    if key not in node.set_labels:
        return _ALREADY
    wanted = Q(subject=fire.subject, spec__label=key, spec__value=value)
    if not is_label_as_left(node, key, fire) or pass_on(fire, wanted):
        return _NOTHING
    cluster_services.label_node(node, {key: None}, actor=actor_of(action.rule.owner), now=now)
    return _CHANGED


def _node(action: AlertAction) -> Node:
    cluster_id, _slash, name = action.subject.partition(":")[2].partition("/")
    found = clusters.nodes().filter(cluster=int(cluster_id), name=name).first()
    if found is None:
        raise NotFound(_("Unknown node."))
    return found


def _hold_queue(action: AlertAction, now: datetime) -> ActionResult:
    if action.moment != FIRE:
        return _open_queue(action, now)
    if not still_fires(action):
        return _NOTHING
    queue = _queue(action)
    if not queue.is_open:
        return _ALREADY
    _set_state(queue, Queue.State.DRAINING, action.rule.owner, now)
    return _CHANGED


def _open_queue(action: AlertAction, now: datetime) -> ActionResult:
    fire = own_change(action)
    if fire is None:
        return _NOTHING
    queue = _queue(fire)
    if not queue.is_draining:
        return _ALREADY
    wanted = Q(spec__queue=queue.name) | Q(spec__queue="", subject=f"queue:{queue.pk}")
    if not is_queue_as_left(queue, fire) or pass_on(fire, wanted):
        return _NOTHING
    _set_state(queue, Queue.State.OPEN, action.rule.owner, now)
    return _CHANGED


def _set_state(queue: Queue, state: Queue.State, owner: User, now: datetime) -> None:
    queue_services.set_state(queue, state, by=owner, actor=actor_of(owner), now=now)


def _queue(action: AlertAction) -> Queue:
    named = action.spec.get("queue") or ""
    key = {"name": named} if named else {"pk": action.subject.partition(":")[2]}
    found = queues.all_queues().filter(**key).first()
    if found is None:
        raise NotFound(_("Unknown queue."))
    return found


def _stop_job(action: AlertAction, now: datetime) -> ActionResult:
    if not still_fires(action):
        return _NOTHING
    found = next(iter(jobs.with_uids([action.subject.partition(":")[2]])), None)
    if found is None or found.deleted_at is not None or found.is_final:
        return _NOTHING
    job_services.command(found, LifecycleAction.ABORT_JOB, user=action.rule.owner, now=now)
    return _CHANGED


_PERFORM: dict[AlertActionKind, Callable[[AlertAction, datetime], ActionResult]] = {
    AlertActionKind.NOTIFY: _notify,
    AlertActionKind.WEBHOOK: _posted,
    AlertActionKind.CORDON: _cordon,
    AlertActionKind.LABEL_NODE: _label_node,
    AlertActionKind.HOLD_QUEUE: _hold_queue,
    AlertActionKind.STOP_JOB: _stop_job,
}
