"""Questions about the days, weeks and months of a time zone, which begin at any hour of UTC."""

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Self, cast

from hekla.apps.measures.job_reports import JobsQuery
from hekla.apps.measures.levels import HOUR
from hekla.apps.measures.selectors import GpuTimeQuery
from hekla.domain.reports import ReportScope, ReportSpan, ReportSpec

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NONE = ReportSpan(_EPOCH, _EPOCH, _EPOCH)


class _OfSpan:
    """The time of a span, in hours."""

    __slots__ = ()
    span: ReportSpan

    @property
    def step(self) -> timedelta:
        return HOUR

    def bounds(self, now: datetime) -> tuple[datetime, datetime]:  # noqa: ARG002  (of any period, also of the past)
        return self.span.begin, self.span.end

    def before(self, now: datetime) -> Self:  # noqa: ARG002
        span = ReportSpan(self.span.before, self.span.begin, self.span.before)
        earlier: Self = replace(cast("Any", self), span=span)  # only dataclasses have this base
        return earlier


@dataclass(frozen=True, slots=True)
class SpanQuery(_OfSpan, GpuTimeQuery):
    """The GPU time of a span."""

    span: ReportSpan = _NONE


@dataclass(frozen=True, slots=True)
class JobsSpanQuery(_OfSpan, JobsQuery):
    """The jobs of a span."""

    span: ReportSpan = _NONE


def query_of(spec: ReportSpec, span: ReportSpan) -> SpanQuery:
    """What a report asks of the measures."""
    names: dict[str, Any] = {spec.scope.value: spec.subject} if spec.scope is not ReportScope.ALL else {}
    return SpanQuery(span=span, **names)


def jobs_query_of(query: SpanQuery) -> JobsSpanQuery:
    """The same about jobs."""
    return JobsSpanQuery(cluster=query.cluster, queue=query.queue, tenant=query.tenant, span=query.span)
