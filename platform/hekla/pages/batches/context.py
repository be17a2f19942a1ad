"""The template context of batch pages, shared by the full page and its live parts."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.http import QueryDict

from hekla.apps.accounts.models import User
from hekla.apps.batches import selectors
from hekla.apps.batches.models import Batch
from hekla.domain import formats
from hekla.domain.phases import JobPhase
from hekla.domain.sweeps import SweepSpec
from hekla.pages.frame import html
from hekla.pages.runs import table as tables
from hekla.pages.runs.table import RunTable

MOST_IN_PREVIEW = 5
_ORDER = [phase.value for phase in JobPhase]


@dataclass(frozen=True, slots=True)
class Segment:
    """The jobs in one phase, as a part of a bar that is 100 wide."""

    phase: str
    count: int
    start: float
    width: float
    chosen: bool = False


@dataclass(frozen=True, slots=True)
class BatchRow:
    """A batch in the list."""

    batch: Batch
    size: int
    bar: Sequence[Segment]


def rows(batches: Sequence[Batch]) -> list[BatchRow]:
    """Rows for these batches, each with the phases of its jobs."""
    counts = selectors.phase_counts(batches)
    return [BatchRow(batch, sum(counts[batch.pk].values()), bar(counts[batch.pk])) for batch in batches]


def bar(counts: Mapping[str, int], chosen: Sequence[str] = ()) -> list[Segment]:
    """The segments of the bar, in the order of a job's life. `chosen`: the phases that the filter selects."""
    total, start, found = sum(counts.values()), 0.0, []
    for phase in _ORDER:
        if count := counts.get(phase, 0):
            width = 100 * count / total
            found.append(Segment(phase, count, round(start, 3), round(width, 3), phase in chosen))
            start += width
    return found


def table(batch: Batch, query: QueryDict) -> RunTable:
    """The jobs of the batch that the query selects."""
    return tables.table(selectors.runs(batch), query)


def detail(batch: Batch, user: User, query: QueryDict) -> dict[str, Any]:
    """Everything that the page of a batch shows. The query string holds the filters, the order and the ranking."""
    jobs = table(batch, query)
    counts = Counter(run.job.phase for run in jobs.runs)
    return {
        "batch": batch,
        "everything": html.address("batches:detail", batch.uid),
        "bar": bar(counts, query.getlist("phase")),
        "running": sum(not JobPhase(phase).is_final for phase in counts.elements()),
        "failed": sum(counts[phase] for phase in selectors.FAILED),
        "may_act": selectors.may_act(user, batch),
        "may_retry": selectors.may_retry(user, batch),
        **tables.context(jobs, query),
    }


def manifest(batch: Batch) -> str:
    """The manifest of a sweep's job, with its placeholders; empty if the batch has no spec."""
    if not batch.spec:
        return ""
    return formats.dump(SweepSpec.parse(batch.spec).job.model_copy(update={"name": batch.name}))
