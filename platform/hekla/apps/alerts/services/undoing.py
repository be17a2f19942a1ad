"""What a rule changed when its alert fired, and may change back when that clears.

It changes back only what is as it left it: what somebody set by hand since then stays. While another open alert wants
the same, its rule changes it back, if that one does so.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from django.db.models import Exists, OuterRef, Q

from hekla.apps.alerts.models import Alert, AlertAction
from hekla.apps.alerts.services.planning import FIRE
from hekla.apps.clusters.models import Node
from hekla.apps.event_log import selectors as event_log
from hekla.apps.queues.models import Queue

_MOST_EVENTS = 1_000
_LABELLED = "NodeLabelled"


def still_fires(action: AlertAction) -> bool:
    """Whether the alert of the action is open: what comes late, after the end of its alert, changes nothing."""
    return Alert.objects.filter(rule=action.rule_id, episode=action.episode, is_open=True).exists()


def own_change(action: AlertAction) -> AlertAction | None:
    """What changed something when the alert of this action fired; None: nothing did. Waits if it is being done."""
    same = {"rule": action.rule_id, "episode": action.episode, "kind": action.kind, "moment": FIRE}
    found = AlertAction.objects.select_for_update(of=("self",)).filter(**same).order_by("pk").first()
    return found if found is not None and found.has_changed else None


def is_node_as_left(node: Node, fire: AlertAction) -> bool:
    """Whether no person changed the node since then, or drains it."""
    return not node.draining_since and not any(_changes(node, "NodeChanged", fire))


def is_label_as_left(node: Node, key: str, fire: AlertAction) -> bool:
    """Whether nobody set or removed this label since then."""
    changed = _changes(node, _LABELLED, fire)
    return not any(key in payload.get(field, ()) for payload in changed for field in ("labels", "removed"))


def _changes(node: Node, kind: str, fire: AlertAction) -> Iterator[dict[str, Any]]:
    """What people and rules changed in the node since then."""
    place, at = f"cluster:{node.cluster_id}", _changed_at(fire)
    found = event_log.of_people(tenants=None, kind=kind, named=place, since=at, limit=_MOST_EVENTS)
    return (event.payload for event in found if event.payload["node"] == node.name and event.at > at)


def is_queue_as_left(queue: Queue, fire: AlertAction) -> bool:
    """Whether nobody changed the state of the queue since then."""
    return queue.state_at is not None and queue.state_at <= _changed_at(fire)


def pass_on(fire: AlertAction, wanted: Q) -> bool:
    """Leave the change to another open alert that found it made. Returns whether there is one."""
    is_open = Alert.objects.filter(rule=OuterRef("rule"), episode=OuterRef("episode"), is_open=True)
    others = AlertAction.objects.filter(Exists(is_open), wanted, kind=fire.kind, moment=FIRE, result="already")
    later = others.filter(done_at__gte=_changed_at(fire)).exclude(pk=fire.pk)
    heir = later.select_for_update(of=("self",)).order_by("done_at", "pk").first()
    if heir is None:
        return False
    heir.has_changed = True
    heir.save(update_fields=["has_changed"])
    return True


def _changed_at(fire: AlertAction) -> datetime:
    return fire.done_at or fire.created_at
