"""Questions about the GPU time of the days, weeks and months of a time zone, which begin at any hour of UTC."""

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from hekla.apps.measures.levels import HOUR
from hekla.apps.measures.selectors import GpuTimeQuery
from hekla.domain.reports import ReportScope, ReportSpan, ReportSpec

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class SpanQuery(GpuTimeQuery):
    """The GPU time of a span, in hours."""

    span: ReportSpan = ReportSpan(_EPOCH, _EPOCH, _EPOCH)  # noqa: RUF009  (frozen)

    @property
    def step(self) -> timedelta:
        return HOUR

    def bounds(self, now: datetime) -> tuple[datetime, datetime]:  # noqa: ARG002  (of any period, also of the past)
        return self.span.begin, self.span.end

    def before(self, now: datetime) -> "SpanQuery":  # noqa: ARG002
        span = ReportSpan(self.span.before, self.span.begin, self.span.before)
        return replace(self, span=span)


def query_of(spec: ReportSpec, span: ReportSpan) -> SpanQuery:
    """What a report asks of the measures."""
    names: dict[str, Any] = {spec.scope.value: spec.subject} if spec.scope is not ReportScope.ALL else {}
    return SpanQuery(span=span, **names)
