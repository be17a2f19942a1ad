"""Which GPUs existed: spans of nodes, derived from their events in the log. The row of a node has only the present."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from hekla.apps.event_log.models import LoggedEvent
from hekla.apps.measures.models import GpuCapacity
from hekla.domain.card_resources import card_counts, is_card
from hekla.domain.gpu_time import NodeState
from hekla.domain.resources import InvalidQuantity, Resources

NODE_CHANGED, CLUSTER_REMOVED = "NodeChanged", "ClusterRemoved"
MOST_GPUS = 10**9
"""In thousandths. What a node reports is not to be believed, and sums of more would not fit."""
_NAME_LENGTH = 253
_Facts = Mapping[str, tuple[str, int, NodeState]]
"""Of a node, by resource: model, GPUs in thousandths, state."""


def cluster_of(event: LoggedEvent) -> int:
    """The cluster (primary key) of an event of a cluster."""
    return int(event.subject.removeprefix("cluster:"))


def follow(event: LoggedEvent) -> datetime | None:
    """Close and open the spans that this event of a cluster changes. Returns since when they differ; None: no change.

    An event that is older than the present span counts from the begin of that span: the order of the log decides.
    """
    cluster, node = cluster_of(event), event.payload.get("node", "")
    present = GpuCapacity.objects.filter(cluster_id=cluster, end_at=None)
    if event.kind == CLUSTER_REMOVED:
        return _close(list(present), event.at)
    spans = {span.resource: span for span in present.filter(node=node)}
    facts = _facts(event.payload)
    gone = [span for resource, span in spans.items() if facts.get(resource) != _state(span)]
    since = _close(gone, event.at)
    unchanged = spans.keys() - {span.resource for span in gone}
    fresh = [
        GpuCapacity(
            cluster_id=cluster,
            node=node,
            resource=resource,
            model=model,
            gpus=gpus,
            state=state,
            begin_at=max(event.at, spans[resource].begin_at) if resource in spans else event.at,
        )
        for resource, (model, gpus, state) in facts.items()
        if resource not in unchanged
    ]
    GpuCapacity.objects.bulk_create(fresh)
    return min([*([since] if since else []), *(span.begin_at for span in fresh)], default=None)


def _facts(payload: Mapping[str, Any]) -> _Facts:
    if not payload.get("present", True):
        return {}
    state = NodeState.DOWN if not payload.get("ready") else NodeState.OPEN
    if state is NodeState.OPEN and not payload.get("schedulable", True):
        state = NodeState.DRAINED
    models = payload.get("models", {})
    cards = {name: amount for name, amount in payload.get("allocatable", {}).items() if is_card(name)}
    try:
        counts = card_counts(Resources.parse(cards)) if cards else {}
    except InvalidQuantity:
        return {}
    return {
        name: (models.get(name, name)[:_NAME_LENGTH], min(round(1000 * count), MOST_GPUS), state)
        for name, count in counts.items()
        if count > 0 and len(name) <= _NAME_LENGTH
    }


def _state(span: GpuCapacity) -> tuple[str, int, NodeState]:
    return span.model, span.gpus, NodeState(span.state)


def _close(spans: Iterable[GpuCapacity], at: datetime) -> datetime | None:
    """End these spans, and delete those without any length. Returns the first end."""
    ends = []
    for span in spans:
        end = max(at, span.begin_at)
        ends.append(end)
        if end == span.begin_at:
            span.delete()
        else:
            span.end_at = end
            span.save(update_fields=["end_at"])
    return min(ends, default=None)
