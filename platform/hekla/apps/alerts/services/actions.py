"""Does what rules planned. A worker claims an action by postponing its due time, so a worker that dies loses none.

Changes of nodes, queues and jobs are stored together with their result, so they happen once. Webhooks may come twice,
with the same id. The rights of the rule's owner are checked here again: roles change.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from django.utils.translation import gettext as _

from hekla.apps.accounts.models import User
from hekla.apps.accounts.services import actor_of
from hekla.apps.alerts import selectors
from hekla.apps.alerts.models import MAX_FAULT, AlertAction
from hekla.apps.alerts.outgoing import call_webhook, notify
from hekla.apps.alerts.owner import acting_owner, record_of
from hekla.apps.alerts.services.planning import CLEAR, FIRE
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
from hekla.domain.alert_rules import AlertActionKind
from hekla.domain.errors import Forbidden, HeklaError, NotFound
from hekla.domain.policies import LifecycleAction
from hekla.lib.backoff import backoff_delay
from hekla.lib.encryption import DecryptionError

MOST_ATTEMPTS = 12
_BUSY_SECONDS = 6.0


@dataclass(frozen=True, slots=True)
class ActionResult:
    """`code`: of `labels.RESULTS`. `has_changed`: whether it changed a node, a queue or a job."""

    code: str
    has_changed: bool = False


_DONE, _ALREADY, _NOTHING = ActionResult("done"), ActionResult("already"), ActionResult("nothing")


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
        found = open_.select_for_update(skip_locked=True, of=("self",)).order_by("due_at", "pk").first()
        if found is None:
            return None
        found.attempts += 1
        found.due_at = now + backoff_delay(found.attempts)
        found.save(update_fields=["attempts", "due_at"])
    return AlertAction.objects.select_related("rule__owner", "rule__tenant").get(pk=found.pk)


def _act(action: AlertAction, now: datetime) -> bool:
    try:
        _require_owner(action)
        if action.kind == AlertActionKind.WEBHOOK:
            call_webhook(action, now=now)  # outside any transaction: the receiver may be slow
        with unit_of_work(), acting_owner(action.rule):
            result = _PERFORM[AlertActionKind(action.kind)](action, now)
            if result.code == _DONE.code:
                _record(action, "", now)
            AlertAction.objects.filter(pk=action.pk).update(
                done_at=now, result=result.code, has_changed=result.has_changed, error=""
            )
    except (NotificationNotSent, DecryptionError) as error:
        return _failed(action, str(error), now, is_final=action.attempts >= MOST_ATTEMPTS)
    except HeklaError as error:
        return _failed(action, error.message, now, is_final=True)
    return True


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
    return False


def _record(action: AlertAction, error: str, now: datetime) -> None:
    facts = {"name": action.rule.name, "about": action.name, "action": action.kind, "moment": action.moment}
    record_of(action.rule, events.AlertActed.model_validate({**facts, "error": error}), now)


def _notify(action: AlertAction, now: datetime) -> ActionResult:
    return _DONE if notify(action, now=now) else _NOTHING


def _posted(_action: AlertAction, _now: datetime) -> ActionResult:
    return _DONE


def _cordon(action: AlertAction, now: datetime) -> ActionResult:
    wanted = action.moment == FIRE
    if not wanted and not _changed_before(action):
        return _NOTHING
    node = _node(action)
    if node.is_cordoned == wanted:
        return _ALREADY
    cluster_services.cordon(node, cordoned=wanted, actor=actor_of(action.rule.owner), now=now)
    return ActionResult("done", has_changed=True)


def _node(action: AlertAction) -> Node:
    cluster_id, _slash, name = action.subject.partition(":")[2].partition("/")
    found = clusters.nodes().filter(cluster=int(cluster_id), name=name).first()
    if found is None:
        raise NotFound(_("Unknown node."))
    return found


def _hold_queue(action: AlertAction, now: datetime) -> ActionResult:
    owner, queue = action.rule.owner, _queue(action)
    by: dict[str, User] = {"by": owner}
    if action.moment == FIRE:
        if not queue.is_open:
            return _ALREADY
        queue_services.set_state(queue, Queue.State.DRAINING, **by, actor=actor_of(owner), now=now)
        return ActionResult("done", has_changed=True)
    if not _changed_before(action):
        return _NOTHING
    if not queue.is_draining:
        return _ALREADY
    queue_services.set_state(queue, Queue.State.OPEN, **by, actor=actor_of(owner), now=now)
    return ActionResult("done", has_changed=True)


def _queue(action: AlertAction) -> Queue:
    named = action.spec.get("queue") or ""
    key = {"name": named} if named else {"pk": action.subject.partition(":")[2]}
    found = queues.all_queues().filter(**key).first()
    if found is None:
        raise NotFound(_("Unknown queue."))
    return found


def _stop_job(action: AlertAction, now: datetime) -> ActionResult:
    found = next(iter(jobs.with_uids([action.subject.partition(":")[2]])), None)
    if found is None or found.deleted_at is not None or found.is_final:
        return _NOTHING
    job_services.command(found, LifecycleAction.ABORT_JOB, user=action.rule.owner, now=now)
    return ActionResult("done", has_changed=True)


def _changed_before(action: AlertAction) -> bool:
    """Whether this action changed something when the alert fired."""
    same = {"rule": action.rule, "episode": action.episode, "number": action.number, "kind": action.kind}
    return action.moment == CLEAR and AlertAction.objects.filter(**same, moment=FIRE, has_changed=True).exists()


_PERFORM: dict[AlertActionKind, Callable[[AlertAction, datetime], ActionResult]] = {
    AlertActionKind.NOTIFY: _notify,
    AlertActionKind.WEBHOOK: _posted,
    AlertActionKind.CORDON: _cordon,
    AlertActionKind.HOLD_QUEUE: _hold_queue,
    AlertActionKind.STOP_JOB: _stop_job,
}
