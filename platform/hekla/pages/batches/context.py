"""The template context of batch pages, shared by the full page and its live parts."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.http import QueryDict

from hekla.apps.accounts.models import User
from hekla.apps.batches import selectors
from hekla.apps.batches.models import Batch, BatchJob
from hekla.domain import formats
from hekla.domain.phases import JobPhase
from hekla.domain.sweeps import SweepSpec

PAGE = 100
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


def detail(batch: Batch, user: User, query: QueryDict) -> dict[str, Any]:
    """Everything that the page of a batch shows. The query string holds the filters and the order of the table."""
    members = selectors.current(batch)
    phases, text, sort = query.getlist("phase"), query.get("q", "")[:100], query.get("sort", "")
    counts = Counter(member.job.phase for member in members)
    names = list(dict.fromkeys(name for member in members for name in member.parameters))
    fitting = (member for member in members if _fits(member, phases, text))
    matching = sorted(fitting, key=_key(sort), reverse=sort[:1] == "-")
    page = _page(query, len(matching))
    return {
        "batch": batch,
        "size": len(members),
        "bar": bar(counts, phases),
        "names": names,
        "members": [_row(member, names) for member in matching[(page - 1) * PAGE : page * PAGE]],
        "found": len(matching),
        "previous": _address(query, page - 1) if page > 1 else "",
        "next": _address(query, page + 1) if page * PAGE < len(matching) else "",
        "sort": sort,
        "q": text,
        "query": query.urlencode(),
        "is_filtered": bool(phases or text),
        "running": sum(not JobPhase(phase).is_final for phase in counts.elements()),
        "failed": sum(counts[phase] for phase in selectors.FAILED),
        "may_act": selectors.may_act(user, batch),
        "may_retry": selectors.may_retry(user, batch),
    }


def manifest(batch: Batch) -> str:
    """The manifest of a sweep's job, with its placeholders; empty if the batch has no spec."""
    if not batch.spec:
        return ""
    return formats.dump(SweepSpec.parse(batch.spec).job.model_copy(update={"name": batch.name}))


def _fits(member: BatchJob, phases: Sequence[str], text: str) -> bool:
    """Whether the phase is selected, and the name or a parameter value contains the text."""
    words = [member.job.name, *(f"{name}={value}" for name, value in member.parameters.items())]
    return (not phases or member.job.phase in phases) and any(text.lower() in word.lower() for word in words)


def _key(sort: str) -> Any:  # noqa: ANN401  (a function that `sorted` takes)
    """The sort key: number, name, phase, end, or a parameter (`p.lr`; numeric values sort before words)."""
    field = sort.removeprefix("-")
    if field.startswith("p."):
        return lambda member: (*_size(member.parameters.get(field[2:], "")), member.number)
    keys = {
        "name": lambda member: (member.job.name, member.number),
        "phase": lambda member: (_ORDER.index(member.job.phase), member.number),
        "ended": lambda member: (str(member.job.finished_at or ""), member.number),
    }
    return keys.get(field, lambda member: member.number)


def _size(value: str) -> tuple[int, float, str]:
    try:
        return 0, float(value), ""
    except ValueError:
        return 1, 0.0, value


def _row(member: BatchJob, names: Sequence[str]) -> dict[str, Any]:
    return {
        "member": member,
        "job": member.job,
        "values": [{"name": name, "value": member.parameters.get(name, "")} for name in names],
    }


def _page(query: QueryDict, count: int) -> int:
    last = max(1, -(-count // PAGE))
    page = query.get("page", "")
    return min(max(1, int(page)), last) if page.isascii() and page.isdigit() and len(page) < 6 else 1  # noqa: PLR2004


def _address(query: QueryDict, page: int) -> str:
    changed = query.copy()
    changed["page"] = str(page)
    return f"?{changed.urlencode()}"
