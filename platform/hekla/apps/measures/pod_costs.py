"""What single pods cost: those that held resources in a period, and those that hold GPUs now without use.

The cost of a pod is rounded once, so those of many pods may differ from a sum by millionths.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import accumulate
from typing import Any

from hekla.apps.accounts.models import User
from hekla.apps.measures.holdings import overlapping
from hekla.apps.measures.ledger import HeldGpus, gpu_us_of, of_model, pods_of
from hekla.apps.measures.levels import HOUR, floor, hours, to_ms
from hekla.apps.measures.models import GpuCapacity, GpuHolding
from hekla.apps.measures.selectors import Chosen, GpuTimeQuery
from hekla.apps.prices import selectors as prices
from hekla.apps.prices.selectors import PriceHistory
from hekla.domain.prices import HOUR_OF, PricedResource, rounded

MOST_PODS = 200
_HOUR_MS = 3_600_000
_Models = Mapping[tuple[int, str, str], str]
"""Models of GPUs by cluster, node and resource."""


@dataclass(slots=True)
class PriceMeter:
    """Prices over a time. Reads the price lists once."""

    begin: datetime
    end: datetime
    _history: PriceHistory = field(default_factory=PriceHistory.read)
    _courses: dict[tuple[Any, ...], list[int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.begin = floor(self.begin, HOUR)

    @property
    def has_prices(self) -> bool:
        return bool(self._history.spans)

    def cost(self, what: tuple[PricedResource, str], queue: int, amount: int, span: tuple[datetime, datetime]) -> int:
        """What this amount (thousandths; of memory MiB) of a resource costs in the span. `what`: resource and model."""
        course = self._course(*what, queue)
        first, last = (max(to_ms(at) - to_ms(self.begin), 0) for at in span)
        return rounded(amount * max(self._until(course, last) - self._until(course, first), 0), HOUR_OF[what[0]])

    @staticmethod
    def _until(course: Sequence[int], milliseconds: int) -> int:
        """The sum of rates over milliseconds, from the begin on. `course`: the sums up to each hour."""
        hour, rest = divmod(milliseconds, _HOUR_MS)
        if hour >= len(course) - 1:
            return course[-1]
        return course[hour] + (course[hour + 1] - course[hour]) * rest // _HOUR_MS

    def _course(self, resource: PricedResource, model: str, queue: int) -> list[int]:
        key = (resource, model, queue)
        if key not in self._courses:
            rates = (
                0 if (found := self._history.at(at)) is None else found.rate(resource, queue, at, model)
                for at in hours(self.begin, self.end)
            )
            self._courses[key] = [0, *accumulate(rate * _HOUR_MS for rate in rates)]
        return self._courses[key]


def pod_costs(user: User, query: GpuTimeQuery, *, now: datetime) -> list[HeldGpus]:
    """The newest pods that held something in the period, at most MOST_PODS + 1. Raises NotFound."""
    begin, end = query.bounds(now)
    chosen = of_model(GpuHolding.objects.filter(Chosen.of(query, user).of_holders), query.model)
    rows = overlapping(chosen, begin, end)
    found = list(rows.order_by("-bound_at", "-pod_id", "resource")[: MOST_PODS + 1])
    models, pods = _models(found), pods_of(found)
    return with_costs(
        [
            HeldGpus(row, pods.get(row.pod_id), since, until, gpu_us_of(row, since, until or min(end, now)))
            for row in found
            if not query.model or models.get(_place(row)) == query.model
            for since, until in [_within(row, begin, end)]
        ],
        now=min(end, now),
    )


def with_costs(rows: Sequence[HeldGpus], *, now: datetime) -> list[HeldGpus]:
    """The same rows with their costs up to `now`; unchanged without prices."""
    if not rows:
        return []
    meter = PriceMeter(min(row.since for row in rows), now)
    if not meter.has_prices:
        return list(rows)
    models, currency = _models([row.holding for row in rows]), prices.currency()
    return [replace(row, cost=_cost(meter, row, models, now), currency=currency) for row in rows]


def holding_costs(rows: Sequence[GpuHolding], *, now: datetime) -> list[int]:
    """What each of these pods has cost so far."""
    found = [HeldGpus(row, None, row.bound_at, row.finished_at, 0) for row in rows]
    return [row.cost or 0 for row in with_costs(found, now=now)]


def _within(row: GpuHolding, begin: datetime, end: datetime) -> tuple[datetime, datetime | None]:
    until = None if row.finished_at is None else min(row.finished_at, end)
    return max(row.bound_at, begin), until


def _cost(meter: PriceMeter, row: HeldGpus, models: _Models, now: datetime) -> int:
    holding = row.holding
    parts = (
        (PricedResource.GPU, models.get(_place(holding), holding.resource), holding.gpus),
        (PricedResource.CPU, "", holding.cpu),
        (PricedResource.MEMORY, "", holding.memory),
    )
    span = (row.since, row.until or now)
    return sum(
        meter.cost((resource, model), holding.queue_id, amount, span) for resource, model, amount in parts if amount
    )


def _place(row: GpuHolding) -> tuple[int, str, str]:
    return row.cluster_id, row.node, row.resource


def _models(rows: Collection[GpuHolding]) -> _Models:
    """The last known model of each GPU that these rows hold."""
    nodes = {row.node for row in rows if row.gpus}
    found = GpuCapacity.objects.filter(cluster_id__in={row.cluster_id for row in rows}, node__in=nodes)
    keys = found.order_by("begin_at").values_list("cluster_id", "node", "resource", "model")
    return {(cluster, node, resource): model for cluster, node, resource, model in keys if model}
