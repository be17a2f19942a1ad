"""What the page of queues over time shows, in its address. Unknown values are ignored, except names."""

from django.http import QueryDict

from hekla.apps.measures.queue_selectors import QueueUseQuery
from hekla.apps.measures.selectors import Period
from hekla.pages.operations import queries


def parse(query: QueryDict) -> QueueUseQuery:
    """The query of an address."""
    return QueueUseQuery(
        period=queries.choice(Period, query.get("period", ""), Period.DAY),
        until=queries.instant(query.get("until", "")),
        **{name: queries.name_of(query, name) for name in ("cluster", "queue", "resource")},
    )


def address(query: QueueUseQuery, **changes: object) -> str:
    """The query string of a query, with these changes."""
    values: dict[str, object] = {
        "period": query.period.value,
        "until": query.until and queries.text(query.until),
        "cluster": query.cluster,
        "queue": query.queue,
        "resource": query.resource,
    }
    return queries.encoded(values | changes)
