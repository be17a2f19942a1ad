"""Prices of resources, and what held resources cost.

Money is in whole millionths of the currency, so sums over any parts are exact. Rounding happens at two places, both by
`rounded` (half up): a rate (the price of an hour, multiplied by the factors of queue and time) is a whole number, and
so is the cost of each class of each resource that one holder held in one UTC hour. All other costs are sums of these.

The price of a UTC hour is the one at its beginning, by the clock of the console's time zone.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any
from zoneinfo import ZoneInfo

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationError,
    model_validator,
)

from hekla.domain.errors import Invalid, Problem
from hekla.domain.field_types import SchemaKeywords, StrictInteger
from hekla.domain.model_errors import explain
from hekla.domain.translation import translate
from hekla.domain.validation import InconsistentFields, quote

MILLION, THOUSAND = 1_000_000, 1000
MAX_NAME, MAX_CURRENCY, MAX_MODELS, MAX_QUEUES, MAX_WINDOWS = 60, 12, 200, 500, 10
_PRICE = re.compile(r"\d{1,7}(\.\d{1,6})?", re.ASCII)
_FACTOR = re.compile(r"\d{1,3}(\.\d{1,3})?", re.ASCII)
_HOURS_OF_DAY, _DAYS_OF_WEEK, _SATURDAY = 24, 7, 5


class PricedResource(StrEnum):
    """What has a price for each hour in which a pod holds it: a core, a GiB of memory, a GPU."""

    CPU = "cpu"
    MEMORY = "memory"
    GPU = "gpu"


HOUR_OF: Mapping[PricedResource, int] = {
    PricedResource.CPU: 3_600_000 * 1000,
    PricedResource.MEMORY: 3_600_000 * 1024,
    PricedResource.GPU: 3_600_000 * 1000,
}
"""What is held in an hour at the price of an hour, in the units of sums: milliseconds times thousandths of a core or
of a GPU, or times MiB."""


class PriceDays(StrEnum):
    """The days of a window: all, Monday to Friday, or Saturday and Sunday."""

    ALL = "all"
    WORKDAYS = "workdays"
    WEEKEND = "weekend"

    def has(self, weekday: int) -> bool:
        """Whether the day belongs to them; Monday is 0."""
        return self is PriceDays.ALL or (weekday >= _SATURDAY) == (self is PriceDays.WEEKEND)


def _as_text(value: object) -> object:
    """Numbers are read digit by digit, not as binary fractions."""
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else value


def _is_price(text: str) -> str:
    if not _PRICE.fullmatch(text):
        raise ValueError(
            translate(
                "{text} is not a price. Examples: 2, 0.35. At most six digits follow the point.", text=quote(text)
            )
        )
    return text


def _is_factor(text: str) -> str:
    if not _FACTOR.fullmatch(text):
        raise ValueError(
            translate(
                "{text} is not a factor. Examples: 1, 0.7. At most three digits follow the point.", text=quote(text)
            )
        )
    return text


_Text = Annotated[str, StringConstraints(strip_whitespace=True, pattern=r"^[^\x00-\x1f\x7f]*$")]
_Named = Annotated[_Text, Field(min_length=1, max_length=253)]
Price = Annotated[
    str, BeforeValidator(_as_text), AfterValidator(_is_price), SchemaKeywords({"pattern": f"^{_PRICE.pattern}$"})
]
"""A price of an hour as text, for example `0.35`."""
Factor = Annotated[
    str, BeforeValidator(_as_text), AfterValidator(_is_factor), SchemaKeywords({"pattern": f"^{_FACTOR.pattern}$"})
]
"""What multiplies a price, as text, for example `0.7`."""


class PriceWindow(BaseModel):
    """Hours of the day with another price, from `begin` until `end` (not included), by the clock of the console.

    An end that is not after the begin is on the next day.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    days: PriceDays = PriceDays.ALL
    begin: Annotated[StrictInteger, Field(ge=0, le=23)]
    end: Annotated[StrictInteger, Field(ge=0, le=24)]
    factor: Factor

    def places(self) -> Iterator[int]:
        """Its hours of the week; that which begins on Monday at 0 is 0."""
        for weekday in range(_DAYS_OF_WEEK):
            for hour in range(_HOURS_OF_DAY):
                is_within = self.begin <= hour < self.end
                if self.end <= self.begin:
                    is_within = hour >= self.begin or hour < self.end
                if is_within and self.days.has(weekday):
                    yield weekday * _HOURS_OF_DAY + hour


class PriceSpec(BaseModel):
    """The prices of a list. `cpu`: of a core hour. `memory`: of a GiB hour. `gpu`: of an hour of a GPU of no model in
    `models`. `queues`: factors by the name of a queue; others have 1. `currency`: a label, nothing is converted.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: Annotated[_Text, Field(min_length=1, max_length=MAX_NAME)]
    currency: Annotated[_Text, Field(min_length=1, max_length=MAX_CURRENCY)]
    cpu: Price = "0"
    memory: Price = "0"
    gpu: Price = "0"
    models: Annotated[dict[_Named, Price], Field(max_length=MAX_MODELS)] = Field(default_factory=dict)
    queues: Annotated[dict[_Named, Factor], Field(max_length=MAX_QUEUES)] = Field(default_factory=dict)
    windows: Annotated[tuple[PriceWindow, ...], Field(max_length=MAX_WINDOWS)] = ()

    @model_validator(mode="after")
    def _has_one_price_at_a_time(self) -> "PriceSpec":
        places = dict[int, int]()
        for number, window in enumerate(self.windows):
            for place in window.places():
                if places.setdefault(place, number) != number:
                    message = translate("These hours overlap those of row {row}.", row=places[place] + 1)
                    raise InconsistentFields([Problem(f"windows.{number}", message)])
        return self

    @classmethod
    def parse(cls, document: Mapping[str, Any]) -> "PriceSpec":
        """The prices that this JSON-like document describes. Raises Invalid with every problem in it."""
        try:
            return cls.model_validate(document)
        except ValidationError as error:
            raise Invalid(explain(error, cls)) from error

    def document(self) -> dict[str, Any]:
        """As JSON-like data; `parse` reads it back."""
        return self.model_dump(mode="json")


@dataclass(frozen=True, slots=True)
class PriceRates:
    """The prices of one list as numbers. `factors`: by the key of a queue, whatever its caller uses."""

    spec: PriceSpec
    zone: ZoneInfo
    factors: Mapping[Any, int]
    _hours: dict[int, int] = field(default_factory=dict)
    _rates: dict[tuple[Any, ...], int] = field(default_factory=dict)

    @classmethod
    def of(cls, spec: PriceSpec, zone: ZoneInfo, factors: Mapping[Any, str]) -> "PriceRates":
        """`factors`: as texts, by the key of a queue."""
        hours = {place: exact(one.factor, THOUSAND) for one in spec.windows for place in one.places()}
        return cls(spec, zone, {key: exact(text, THOUSAND) for key, text in factors.items()}, hours)

    def rate(self, resource: PricedResource, queue: object, at: datetime, model: str = "") -> int:
        """The price of an hour of this resource in a UTC hour that begins at `at`, in millionths."""
        local = at.astimezone(self.zone)
        place = local.weekday() * _HOURS_OF_DAY + local.hour
        key = (resource, model, queue, self._hours.get(place, THOUSAND))
        found = self._rates.get(key)
        if found is None:
            factor = self.factors.get(queue, THOUSAND) * key[-1]
            found = self._rates[key] = rounded(exact(self._price(resource, model), MILLION) * factor, MILLION)
        return found

    def _price(self, resource: PricedResource, model: str) -> str:
        if resource is PricedResource.GPU:
            return self.spec.models.get(model, self.spec.gpu)
        return self.spec.cpu if resource is PricedResource.CPU else self.spec.memory


def exact(text: str, unit: int) -> int:
    """A decimal text in whole parts of one, `unit` of which make one. It must have no more digits than these."""
    whole, _point, part = text.partition(".")
    digits = len(str(unit)) - 1
    return int(whole) * unit + int(part.ljust(digits, "0") or 0)


def rounded(amount: int, divisor: int) -> int:
    """The quotient as a whole number, half up. Neither is negative."""
    return (2 * amount + divisor) // (2 * divisor)


def cost(resource: PricedResource, amount: int, rate: int) -> int:
    """What this amount of a resource costs at this rate, in millionths. `amount`: in the units of `HOUR_OF`."""
    return rounded(amount * rate, HOUR_OF[resource])


def as_decimal(amount: int) -> str:
    """An exact amount of money as text with six digits after the point."""
    sign = "-" if amount < 0 else ""
    return f"{sign}{abs(amount) // MILLION}.{abs(amount) % MILLION:06}"


def in_words(amount: int, currency: str) -> str:
    """An amount of money for people, to the hundredth: “1,234.50 EUR”."""
    hundredths = rounded(abs(amount), MILLION // 100)
    sign = "-" if amount < 0 and hundredths else ""
    return f"{sign}{hundredths // 100:,}.{hundredths % 100:02} {currency}"
