"""Questions about the GPU time of single nodes, for people who see everything."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from django.db.models import F, Sum

from hekla.apps.measures.levels import HOUR, floor
from hekla.apps.measures.models import NodeGpuTime
from hekla.domain.gpu_time import HELD, GpuClass

HOURS = 24
"""How many hours are reported, the present one included."""
_CLASSES = [one.value for one in GpuClass]


class NodeHour(NamedTuple):
    """GPU time of a node in an hour, in microseconds: its capacity, what pods held, and what they used."""

    capacity: int = 0
    held: int = 0
    useful: int = 0


def node_hours(
    nodes: Collection[tuple[int, str]], *, now: datetime
) -> tuple[Sequence[datetime], Mapping[tuple[int, str], list[NodeHour]]]:
    """The begins of the last hours, and the GPU time of each of these nodes (cluster, name) in each of them."""
    first = floor(now, HOUR) - (HOURS - 1) * HOUR
    times = [first + number * timedelta(hours=1) for number in range(HOURS)]
    held = sum((F(one.value) for one in HELD[1:]), F(HELD[0].value))
    whole = sum((F(one) for one in _CLASSES[1:]), F(_CLASSES[0]))
    clusters, names = {cluster for cluster, _name in nodes}, {name for _cluster, name in nodes}
    rows = NodeGpuTime.objects.filter(level=60, cluster_id__in=clusters, at__gte=first, at__lte=now, node__in=names)
    found: dict[tuple[int, str], list[NodeHour]] = defaultdict(lambda: [NodeHour()] * HOURS)
    sums = rows.order_by().values_list("cluster_id", "node", "at")
    for cluster, node, at, *amounts in sums.annotate(whole=Sum(whole), held=Sum(held), used=Sum("useful")):
        found[cluster, node][(at - first) // HOUR] = NodeHour(*amounts)
    return times, found
