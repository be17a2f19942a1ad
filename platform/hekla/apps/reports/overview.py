"""The handful of figures that say at a glance how the platform does, each with that of the period before."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from django.db.models import Count, Q

from hekla.apps.accounts import selectors as accounts
from hekla.apps.accounts.models import User
from hekla.apps.accounts.roles import Permission
from hekla.apps.alerts import selectors as alerts
from hekla.apps.clusters import selectors as clusters
from hekla.apps.clusters.models import Cluster
from hekla.apps.measures import job_reports, queue_selectors, selectors
from hekla.apps.measures.job_reports import JobFigures, JobsQuery
from hekla.apps.measures.queue_selectors import QueueUseQuery
from hekla.apps.measures.selectors import Amounts, GpuTimeQuery, GpuTimeReport, GroupBy, MeasuresQuery
from hekla.domain.gpu_time import GPU_HOUR, HELD, WASTED, GpuClass
from hekla.domain.job_measures import MomentKind

_HALF, _MOST = 0.5, 0.9


class OverviewFigure(StrEnum):
    """A figure of the overview.

    useful, held: GPU time in use, and held by pods, in per cent of the capacity. People who do not see it get the
    useful part of what pods held. wasted: in GPU hours. wait_p50, wait_p90: waiting times of the jobs that started, in
    seconds. completed, failed: jobs that ended. starved: queues that waited below their share while others were above.
    Of this moment: waiting (jobs), alerts (open ones), nodes_down.
    """

    USEFUL = "useful"
    HELD = "held"
    WASTED = "wasted"
    WAIT_HALF = "wait_p50"
    WAIT_MOST = "wait_p90"
    WAITING = "waiting"
    COMPLETED = "completed"
    FAILED = "failed"
    STARVED = "starved"
    ALERTS = "alerts"
    NODES_DOWN = "nodes_down"


UNITS: Mapping[OverviewFigure, str] = {
    OverviewFigure.USEFUL: "percent",
    OverviewFigure.HELD: "percent",
    OverviewFigure.WASTED: "gpu_hours",
    OverviewFigure.WAIT_HALF: "seconds",
    OverviewFigure.WAIT_MOST: "seconds",
}
"""Of the figures that are no counts."""
OF_THIS_MOMENT = frozenset({OverviewFigure.WAITING, OverviewFigure.ALERTS, OverviewFigure.NODES_DOWN})
"""Figures without a period before. A period in the past has none of them."""


@dataclass(frozen=True, slots=True)
class OverviewValue:
    """A figure and that of the period before; None: nothing is known of it, for example no job started."""

    value: float | None
    before: float | None = None


@dataclass(frozen=True, slots=True)
class Overview:
    """The figures that the person can see, and the GPU time behind them. `nodes`: how many there are."""

    gpu_time: GpuTimeReport
    figures: Mapping[OverviewFigure, OverviewValue]
    nodes: int = 0

    @property
    def query(self) -> MeasuresQuery:
        return self.gpu_time.query


def overview(user: User, query: MeasuresQuery, *, now: datetime) -> Overview:
    """The overview of a period for this person; of one cluster if the query names it. Raises NotFound."""
    period, until, cluster = query.period, query.until, query.cluster
    of_gpus = GpuTimeQuery(period, until, cluster, by=GroupBy.CLUSTER)
    gpu_time = selectors.gpu_time(user, of_gpus, now=now, with_parts=False)
    jobs = job_reports.jobs_report(user, JobsQuery(period, until, cluster), now=now, most_parts=0)
    starved = map(len, queue_selectors.starved_queues(user, QueueUseQuery(period, until, cluster), now=now))
    found = {**_of_gpus(gpu_time), **_of_jobs(jobs.total, jobs.before), OverviewFigure.STARVED: OverviewValue(*starved)}
    nodes = 0
    if jobs.waiting is not None:
        found[OverviewFigure.WAITING] = OverviewValue(jobs.waiting.count)
        found[OverviewFigure.ALERTS] = OverviewValue(alerts.alerts(user).filter(is_open=True).count())
        if accounts.may(user, Permission.SEE_EVERYTHING):
            rows = clusters.nodes(clusters.get(cluster) if cluster else None)
            if not cluster:
                rows = rows.exclude(cluster__kind=Cluster.Kind.SIMULATED)
            counts = rows.order_by().aggregate(nodes=Count("pk"), down=Count("pk", filter=Q(is_ready=False)))
            nodes = counts["nodes"]
            found[OverviewFigure.NODES_DOWN] = OverviewValue(counts["down"])
    return Overview(gpu_time, {what: found[what] for what in OverviewFigure if what in found}, nodes)


def _of_gpus(report: GpuTimeReport) -> dict[OverviewFigure, OverviewValue]:
    totals, before = report.totals, report.before
    found = {
        OverviewFigure.USEFUL: OverviewValue(*map(_useful, (totals, before))),
        OverviewFigure.WASTED: OverviewValue(*(_sum(one, WASTED) / GPU_HOUR for one in (totals, before))),
    }
    if report.is_capacity:
        found[OverviewFigure.HELD] = OverviewValue(*(_percent(one, HELD) for one in (totals, before)))
    return found


def _useful(amounts: Amounts) -> float | None:
    """None also if the use of all that pods held is unknown: 0 would say that they used nothing."""
    is_known = amounts.get(GpuClass.USEFUL) or amounts.get(GpuClass.IDLE) or not amounts.get(GpuClass.UNMEASURED)
    return _percent(amounts, (GpuClass.USEFUL,)) if is_known else None


def _percent(amounts: Amounts, classes: tuple[GpuClass, ...]) -> float | None:
    whole = sum(amounts.values())
    return 100 * _sum(amounts, classes) / whole if whole else None


def _sum(amounts: Amounts, classes: tuple[GpuClass, ...]) -> int:
    return sum(amounts.get(what, 0) for what in classes)


def _of_jobs(now: JobFigures, before: JobFigures) -> dict[OverviewFigure, OverviewValue]:
    return {
        OverviewFigure.WAIT_HALF: OverviewValue(now.wait(_HALF), before.wait(_HALF)),
        OverviewFigure.WAIT_MOST: OverviewValue(now.wait(_MOST), before.wait(_MOST)),
        OverviewFigure.COMPLETED: OverviewValue(now.count(MomentKind.COMPLETED), before.count(MomentKind.COMPLETED)),
        OverviewFigure.FAILED: OverviewValue(now.count(MomentKind.FAILED), before.count(MomentKind.FAILED)),
    }
