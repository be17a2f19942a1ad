"""What a page about waiting times or failures shows, in its address. Unknown values are ignored, except names."""

from django.http import QueryDict

from hekla.apps.measures.job_reports import FailurePlace, JobGroupBy, JobsQuery
from hekla.apps.measures.selectors import Period
from hekla.domain.job_measures import JobSize, MomentKind
from hekla.pages.operations import queries

_NAMES = ("cluster", "queue", "tenant", "model", "person", "kind")
_LONGEST = "longest"


def parse(query: QueryDict) -> JobsQuery:
    """The query of an address."""
    size = query.get("size", "")
    return JobsQuery(
        period=queries.choice(Period, query.get("period", ""), Period.DAY),
        until=queries.instant(query.get("until", "")),
        size=size if size in list(JobSize) else "",
        by=queries.choice(JobGroupBy, query.get("by", ""), JobGroupBy.QUEUE),
        **{name: queries.name_of(query, name) for name in _NAMES},
    )


def address(query: JobsQuery, **changes: object) -> str:
    """The query string of a query, with these changes. Empty values are left out."""
    values: dict[str, object] = {
        "period": query.period.value,
        "until": query.until and queries.text(query.until),
        "size": query.size,
        "by": query.by.value,
        **{name: getattr(query, name) for name in _NAMES},
        **changes,
    }
    return queries.encoded(values)


def kind_of(query: QueryDict) -> MomentKind:
    """What an address lists."""
    return queries.choice(MomentKind, query.get("of", ""), MomentKind.STARTED)


def part_of(query: QueryDict) -> str:
    """The cause or reason in an address; empty: all."""
    return queries.name_of(query, "part")


def places_of(query: QueryDict) -> dict[FailurePlace, str]:
    """The node, image and exit code in an address."""
    found = {place: queries.name_of(query, place.value) for place in FailurePlace}
    code = found[FailurePlace.EXIT_CODE]
    if not code.removeprefix("-").isdecimal() or len(code) > 9:  # noqa: PLR2004  (fits a column)
        del found[FailurePlace.EXIT_CODE]
    return {place: where for place, where in found.items() if where}
