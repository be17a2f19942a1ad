"""Amounts of CPU, memory and devices, as exact numbers.

Units are Volcano's internal ones: `cpu` and every device in thousandths (one core or one GPU is 1000), `memory` in
bytes, `pods` as a count. Texts are Kubernetes quantities (`250m`, `4Gi`, `2`).
"""

import re
from collections.abc import ItemsView, Iterator, KeysView, Mapping, ValuesView
from fractions import Fraction
from functools import lru_cache
from types import MappingProxyType

from hekla.domain.translation import translate

_QUANTITY = re.compile(r"^(?P<number>\d+(?:\.\d+)?|\.\d+)(?P<suffix>m|k|Ki|M|Mi|G|Gi|T|Ti|P|Pi|E|Ei)?$", re.ASCII)
_SUFFIXES: dict[str | None, int | Fraction] = {
    None: Fraction(1), "m": Fraction(1, 1000),
    "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "P": 10**15, "E": 10**18,
    "Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40, "Pi": 2**50, "Ei": 2**60,
}  # fmt: skip
_MAIN = frozenset({"cpu", "memory"})
_WHOLE = frozenset({"memory", "pods"})
_BINARY_UNITS = (("Ti", 2**40), ("Gi", 2**30), ("Mi", 2**20), ("Ki", 2**10))
_mappings: dict[tuple[tuple[str, float], ...], Mapping[str, float]] = {}
"""The latest amounts, each once: a million jobs request a few different ones."""
_MAPPINGS_AT_MOST, _SHARED_AMOUNTS = 4096, 16
MAX_AMOUNT = 2**60
MAX_LENGTH = 64


class InvalidQuantity(ValueError):
    """The text is not an amount like `250m`, `4Gi` or `2`."""


def parse_quantity(name: str, text: str | int | float) -> float:
    """The amount of resource `name` in internal units. Raises InvalidQuantity."""
    return _parsed(name, str(text)[: MAX_LENGTH + 1])


@lru_cache(maxsize=4096)
def _parsed(name: str, text: str) -> float:
    """Cached, since nodes and tasks repeat the same few amounts."""
    match = _QUANTITY.match(text.strip())
    if not match or len(text) > MAX_LENGTH:
        raise InvalidQuantity(translate("“{text}” is not an amount. Examples: 2, 250m, 4Gi", text=text[:40]))
    amount = Fraction(match["number"]) * _SUFFIXES[match["suffix"]]
    if amount > MAX_AMOUNT:
        raise InvalidQuantity(translate("“{text}” exceeds the capacity of any machine", text=text[:40]))
    return float(amount if name in _WHOLE else amount * 1000)


def format_quantity(name: str, amount: float) -> str:
    """The amount as a Kubernetes quantity that parses back to the same number."""
    if name == "memory":
        for unit, size in _BINARY_UNITS:
            if amount >= size and amount % size == 0:
                return f"{int(amount // size)}{unit}"
        return str(int(amount))
    if name == "pods":
        return str(int(amount))
    return str(int(amount // 1000)) if amount % 1000 == 0 else f"{int(amount)}m"


class Resources(Mapping[str, float]):
    """An immutable amount per resource name. A name that is absent counts as zero."""

    __slots__ = ("amounts",)

    def __init__(self, amounts: Mapping[str, float] | None = None) -> None:
        self.amounts = _shared({name: float(n) for name, n in (amounts or {}).items() if n})
        """The same amounts as a plain mapping, which compares and reads fastest: there may be millions."""

    @classmethod
    def parse(cls, quantities: Mapping[str, str | int | float]) -> "Resources":
        """From Kubernetes quantities. Raises InvalidQuantity."""
        return cls({name: parse_quantity(name, text) for name, text in quantities.items()})

    @classmethod
    def parse_limits(cls, quantities: Mapping[str, str | int | float]) -> "Resources":
        """As `parse`, for limits: 0 devices are a limit. 0 CPU or memory are none, as in Volcano."""
        limits, parsed = cls(), {name: parse_quantity(name, text) for name, text in quantities.items()}
        limits.amounts = MappingProxyType({name: n for name, n in parsed.items() if n or name not in _MAIN})
        return limits

    def quantities(self) -> dict[str, str]:
        """As Kubernetes quantities, for manifests and stored rows."""
        return {name: format_quantity(name, amount) for name, amount in self.items()}

    def in_base_units(self) -> dict[str, float]:
        """In the units of monitoring: cores, bytes, pods, and the number of each device."""
        return {name: amount if name in _WHOLE else amount / 1000 for name, amount in self.items()}

    def __getitem__(self, name: str) -> float:
        return self.amounts[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.amounts)

    def __len__(self) -> int:
        return len(self.amounts)

    def get(self, name: str, default: float = 0.0) -> float:  # type: ignore[override]
        """The amount of `name`, or the default. Faster than `Mapping.get`, for readers of thousands of nodes."""
        return self.amounts.get(name, default)

    def keys(self) -> KeysView[str]:
        """The names. Faster than `Mapping.keys`."""
        return self.amounts.keys()

    def values(self) -> ValuesView[float]:
        """The amounts. Faster than `Mapping.values`, which looks up each name."""
        return self.amounts.values()

    def items(self) -> ItemsView[str, float]:
        """The names and amounts. Faster than `Mapping.items`, which looks up each name."""
        return self.amounts.items()

    def amount(self, name: str) -> float:
        """The amount of `name`; zero if it is absent."""
        return self.amounts.get(name, 0.0)

    def __add__(self, other: Mapping[str, float]) -> "Resources":
        return Resources({n: self.amount(n) + other.get(n, 0.0) for n in {*self, *other}})

    def __sub__(self, other: Mapping[str, float]) -> "Resources":
        return Resources({n: self.amount(n) - other.get(n, 0.0) for n in {*self, *other}})

    def __mul__(self, factor: float) -> "Resources":
        return Resources({n: amount * factor for n, amount in self.items()})

    def fits_in(self, room: Mapping[str, float]) -> bool:
        """Whether `room` has every requested amount."""
        return all(amount <= room.get(name, 0.0) for name, amount in self.items())

    def __eq__(self, other: object) -> bool:
        """Whether the amounts are equal. Faster than `Mapping.__eq__`, which copies both."""
        return self.amounts == (other.amounts if isinstance(other, Resources) else other)

    def __hash__(self) -> int:
        return hash(frozenset(self.amounts.items()))

    def __repr__(self) -> str:
        return f"Resources({self.quantities()})"


def _shared(amounts: dict[str, float]) -> Mapping[str, float]:
    """These amounts, as the same immutable mapping for all that are equal, unless they are unusually many."""
    if len(amounts) > _SHARED_AMOUNTS:
        return MappingProxyType(amounts)
    key = tuple(amounts.items())
    found = _mappings.get(key)
    if found is None:
        if len(_mappings) >= _MAPPINGS_AT_MOST:
            _mappings.clear()
        found = _mappings[key] = MappingProxyType(amounts)
    return found
