"""What a page of measures shows, in its address. Unknown values are ignored, except names."""

from collections.abc import Mapping
from datetime import UTC, datetime
from enum import StrEnum
from typing import TypeVar
from urllib.parse import urlencode

from django.http import QueryDict
from django.utils.dateparse import parse_datetime

from hekla.apps.measures.selectors import GpuTimeQuery, GroupBy, MeasuresQuery, Period
from hekla.domain.gpu_time import HELD, GpuClass

_NAME_LENGTH = 253
ChoiceT = TypeVar("ChoiceT", bound=StrEnum)


def parse(query: QueryDict) -> GpuTimeQuery:
    """The query of an address."""
    names = {name: name_of(query, name) for name in ("cluster", "queue", "tenant", "model")}
    return GpuTimeQuery(
        period=choice(Period, query.get("period", ""), Period.DAY),
        until=instant(query.get("until", "")),
        by=choice(GroupBy, query.get("by", ""), GroupBy.TENANT),
        **names,
    )


def name_of(query: QueryDict, field: str) -> str:
    """The name in this field of an address, or nothing."""
    return query.get(field, "").replace("\0", "")[:_NAME_LENGTH]


def class_of(query: QueryDict) -> GpuClass:
    """The class in an address."""
    found = choice(GpuClass, query.get("of", ""), GpuClass.USEFUL)
    return found if found in HELD else GpuClass.USEFUL


def choice(choices: type[ChoiceT], value: str, default: ChoiceT) -> ChoiceT:
    """The choice of that value, or the default."""
    return choices(value) if value in list(choices) else default


def instant(value: str) -> datetime | None:
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
        "until": query.until and text(query.until),
        "cluster": query.cluster,
        "queue": query.queue,
        "tenant": query.tenant,
        "model": query.model,
        "by": query.by.value,
        **changes,
    }
    return encoded(values)


def overview_address(query: MeasuresQuery, **changes: object) -> str:
    """The query string of an overview, with these changes."""
    until = query.until and text(query.until)
    return encoded({"period": query.period.value, "until": until, "cluster": query.cluster, **changes})


def live(page: str, address: str, until: datetime | None = None) -> str:
    """The live query of a dashboard with this address; empty for a past period, which does not change any more."""
    return "" if until else urlencode({"view": "operations", "page": page}) + "&" + address.removeprefix("?")


def encoded(values: Mapping[str, object]) -> str:
    """The query string of these values; empty ones are left out."""
    return "?" + urlencode({name: value for name, value in values.items() if value})


def text(at: datetime) -> str:
    """An instant for an address."""
    return at.strftime("%Y-%m-%dT%H:%M:%SZ")
