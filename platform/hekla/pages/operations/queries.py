"""What a page of measures shows, in its address. Unknown values are ignored, except names."""

from datetime import UTC, datetime
from enum import StrEnum
from typing import TypeVar
from urllib.parse import urlencode

from django.http import QueryDict
from django.utils.dateparse import parse_datetime

from hekla.apps.measures.selectors import GpuTimeQuery, GroupBy, Period
from hekla.domain.gpu_time import HELD, GpuClass

_NAME_LENGTH = 253
ChoiceT = TypeVar("ChoiceT", bound=StrEnum)


def parse(query: QueryDict) -> GpuTimeQuery:
    """The query of an address."""
    names = {
        name: query.get(name, "").replace("\0", "")[:_NAME_LENGTH] for name in ("cluster", "queue", "tenant", "model")
    }
    return GpuTimeQuery(
        period=_choice(Period, query.get("period", ""), Period.DAY),
        until=_instant(query.get("until", "")),
        by=_choice(GroupBy, query.get("by", ""), GroupBy.TENANT),
        **names,
    )


def class_of(query: QueryDict) -> GpuClass:
    """The class in an address."""
    found = _choice(GpuClass, query.get("of", ""), GpuClass.USEFUL)
    return found if found in HELD else GpuClass.USEFUL


def _choice(choices: type[ChoiceT], value: str, default: ChoiceT) -> ChoiceT:
    return choices(value) if value in list(choices) else default


def _instant(value: str) -> datetime | None:
    """An instant in UTC; one without a zone is too."""
    try:
        found = parse_datetime(value)
        return found and (found if found.tzinfo else found.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def address(query: GpuTimeQuery, **changes: object) -> str:
    """The query string of a query, with these changes. Empty values are left out."""
    values: dict[str, object] = {
        "period": query.period.value,
        "until": query.until and query.until.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "cluster": query.cluster,
        "queue": query.queue,
        "tenant": query.tenant,
        "model": query.model,
        "by": query.by.value,
        **changes,
    }
    return "?" + urlencode({name: value for name, value in values.items() if value})
