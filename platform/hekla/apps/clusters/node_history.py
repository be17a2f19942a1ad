"""The history of a cluster's nodes, from the event log: rows of nodes have only their present state."""

from datetime import datetime

from django.db.models import QuerySet
from django.db.models.fields.json import KT

from hekla.apps.event_log.models import LoggedEvent
from hekla.domain.events import NodeChanged, parse


def last_changes(cluster_id: int, before: datetime) -> list[NodeChanged]:
    """The last change of each node before a time, also of nodes that are gone since."""
    found = _changes(cluster_id).filter(at__lt=before).annotate(node=KT("payload__node"))
    return [_read(row) for row in found.order_by("node", "-id").distinct("node")]


def _changes(cluster_id: int) -> QuerySet[LoggedEvent]:
    return LoggedEvent.objects.filter(subject=f"cluster:{cluster_id}", kind=NodeChanged.kind)


def _read(row: LoggedEvent) -> NodeChanged:
    found = parse(row.kind, row.payload)
    if not isinstance(found, NodeChanged):
        raise TypeError(row.kind)
    return found
