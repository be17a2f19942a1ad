"""The pods behind the figures: who held GPUs in a period, and who holds them now without use."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from django.db.models import Exists, F, OuterRef, Q, QuerySet

from hekla.apps.accounts.models import User
from hekla.apps.jobs.models import Pod
from hekla.apps.measures import labels
from hekla.apps.measures.holdings import overlapping
from hekla.apps.measures.models import GpuCapacity, GpuHolding
from hekla.apps.measures.selectors import Chosen, GpuTimeQuery
from hekla.apps.usage import selectors as usage
from hekla.domain.gpu_time import IDLE_BELOW, GpuClass
from hekla.domain.prices import in_words

MOST = 200
WASTED_MINUTES = 10
"""GPUs that were not used for so long are listed as unused."""
_MICROSECOND = timedelta(microseconds=1)
_LOST = (GpuClass.PREEMPTED, GpuClass.RETRIED, GpuClass.FAILED)


@dataclass(frozen=True, slots=True)
class HeldGpus:
    """GPUs that a pod held from `since` until `until` (None: now), as far as they are meant. `pod` None: deleted.

    `gpu_us`: the GPU time between both, in microseconds. `what`: GANG or IDLE if they are unused now, else None.
    `cost`: of all that the pod held, in millionths of the currency; None: not known.
    """

    holding: GpuHolding
    pod: Pod | None
    since: datetime
    until: datetime | None
    gpu_us: int
    what: GpuClass | None = None
    cost: int | None = None
    currency: str = ""

    @property
    def reason(self) -> str:
        """Why the GPUs are unused now, in words; empty if they are not."""
        return str(labels.CLASSES[self.what]) if self.what else ""

    @property
    def gpus(self) -> str:
        """The number of GPUs in words."""
        return f"{self.holding.gpus / 1000:g}"

    @property
    def worth(self) -> str:
        """The cost in words; empty if it is not known."""
        return "" if self.cost is None else in_words(self.cost, self.currency)

    @property
    def hours(self) -> str:
        """The GPU time in hours."""
        return labels.hours(self.gpu_us)


def holdings(user: User, query: GpuTimeQuery, what: GpuClass, *, now: datetime) -> list[HeldGpus]:
    """The newest pods that a class counts, at most MOST + 1. Raises NotFound.

    Useful, idle and unmeasured time of one pod may alternate from minute to minute, so its time is that of all three.
    """
    begin, end = query.bounds(now)
    rows = overlapping(_chosen(user, query).filter(_of_class(what)), begin, end)
    rows = rows.order_by("-bound_at", "-pod_id")[: MOST + 1]
    return [one for one in _with_pods(rows, what, begin, min(end, now)) if one.gpu_us]


def _chosen(user: User, query: GpuTimeQuery) -> QuerySet[GpuHolding]:
    return of_model(GpuHolding.objects.filter(Chosen.of(query, user).of_holders, gpus__gt=0), query.model)


def of_model(rows: QuerySet[GpuHolding], model: str) -> QuerySet[GpuHolding]:
    """Those that held GPUs of this model, if it was one of its node; empty: all."""
    if not model:
        return rows
    keys = {name: OuterRef(name) for name in ("cluster_id", "node", "resource")}
    return rows.filter(Exists(GpuCapacity.objects.filter(**keys, model=model)))


def _of_class(what: GpuClass) -> Q:
    if what is GpuClass.GANG:
        return Q(ready_at=None) | Q(ready_at__gt=F("bound_at"))
    return Q(outcome=what.value if what in _LOST else "", ready_at__isnull=False)


def _with_pods(rows: QuerySet[GpuHolding], what: GpuClass, begin: datetime, end: datetime) -> list[HeldGpus]:
    found = list(rows)
    pods = pods_of(found)
    times = [_time(row, what, begin, end) for row in found]
    return [
        HeldGpus(row, pods.get(row.pod_id), since, until, gpu_us_of(row, since, until))
        for row, (since, until) in zip(found, times, strict=True)
    ]


def pods_of(rows: Sequence[GpuHolding]) -> dict[int, Pod]:
    """The pods of these rows by primary key, without those of deleted jobs."""
    found = Pod.objects.filter(pk__in=[row.pod_id for row in rows], job__deleted_at=None)
    return {pod.pk: pod for pod in found.select_related("job__owner", "job__tenant", "job__queue").defer("job__spec")}


def _time(row: GpuHolding, what: GpuClass, begin: datetime, end: datetime) -> tuple[datetime, datetime]:
    """The time of this class, within both bounds."""
    ready, finished = row.ready_at or row.finished_at or end, row.finished_at or end
    since, until = (row.bound_at, ready) if what is GpuClass.GANG else (ready, finished)
    since = min(max(since, begin), end)
    return since, max(since, min(until, end))


def gpu_us_of(row: GpuHolding, since: datetime, until: datetime) -> int:
    """The GPU time that a row holds between both, in microseconds."""
    return row.gpus * ((until - since) // _MICROSECOND) // 1000


def waste(user: User, query: GpuTimeQuery, *, now: datetime) -> list[HeldGpus]:
    """GPUs that pods hold now and have not used for a while, those with most GPU time first. Raises NotFound.

    A pod whose use is not measured is not listed.
    """
    limit = now - timedelta(minutes=WASTED_MINUTES)
    rows = list(_chosen(user, query).filter(finished_at=None, bound_at__lte=limit))
    least = {row.pod_id: round(IDLE_BELOW * row.gpus) for row in rows if row.ready_at is not None}
    busy = usage.gpu_last_busy(least) if least else {}
    unused = [one for row in rows if (one := _unused(row, busy, now)) is not None and one.since <= limit]
    unused.sort(key=lambda one: (-one.gpu_us, one.holding.pod_id))
    found = list[HeldGpus]()
    for start in range(0, len(unused), MOST):
        some = unused[start : start + MOST]
        pods = pods_of([one.holding for one in some])
        found += [replace(one, pod=pods[one.holding.pod_id]) for one in some if one.holding.pod_id in pods]
        if len(found) >= MOST:
            break
    return found[:MOST]


@dataclass(frozen=True, slots=True)
class PodGpus:
    """The GPUs that a pod holds now. `unused_since`: None if it uses them, or its use is not measured."""

    gpus: float
    unused_since: datetime | None


def gpus_of(pods: Collection[int], *, now: datetime) -> dict[int, PodGpus]:
    """The GPUs that these pods (primary keys) hold now, whoever sees them; without pods that hold none."""
    rows = list(GpuHolding.objects.filter(pod_id__in=pods, finished_at=None))
    least = {row.pod_id: round(IDLE_BELOW * row.gpus) for row in rows if row.ready_at is not None}
    busy = usage.gpu_last_busy(least) if least else {}
    found: dict[int, PodGpus] = {}
    for row in rows:
        unused, before = _unused(row, busy, now), found.get(row.pod_id)
        since = unused.since if unused and now - unused.since >= timedelta(minutes=WASTED_MINUTES) else None
        found[row.pod_id] = PodGpus(row.gpus / 1000 + (before.gpus if before else 0.0), since)
    return found


def _unused(row: GpuHolding, busy: dict[int, datetime | None], now: datetime) -> HeldGpus | None:
    """The row without its pod if its GPUs are unused; None if they are used, or that is not known.

    `busy`: of the measured pods.
    """
    if row.ready_at is None:
        return HeldGpus(row, None, row.bound_at, None, gpu_us_of(row, row.bound_at, now), GpuClass.GANG)
    if row.pod_id not in busy:
        return None
    since = max(row.ready_at, busy[row.pod_id] or row.ready_at)
    return HeldGpus(row, None, since, None, gpu_us_of(row, since, now), GpuClass.IDLE)
