"""Objects of the engine's input as JSON: equal values once, and many objects of a class as columns.

Plain JSON, so a file can be read without Hekla, and reading one runs no code: classes are found by name in a fixed
table. A value that JSON lacks is a list that begins with its tag:

    ["t", …] tuple   ["l", …] list   ["s", …] set   ["f", "inf"] float   ["e", class, value] enumeration
    ["r", amounts] resources   ["d", {…}] mapping by text   ["m", [[key, value], …]] other mapping
    ["o", class, {field: value}] object
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from enum import Enum
from operator import attrgetter
from types import MappingProxyType
from typing import Any

import orjson

from hekla.domain import phases, taints
from hekla.domain.resources import Resources
from hekla.engine import constraints, devices, model, storage

Json = Any
_PLAIN = frozenset({"str", "int", "float", "bool"})
"""Types of fields that are written as they are; all others refer to `values`."""
_MODULES = (phases, taints, constraints, devices, model, storage)
_CLASSES: Mapping[str, type] = {
    name: found
    for module in _MODULES
    for name, found in vars(module).items()
    if isinstance(found, type) and (is_dataclass(found) or issubclass(found, Enum))
}
_NAMES: Mapping[type, tuple[str, ...]] = {
    kind: tuple(one.name for one in fields(kind)) for kind in _CLASSES.values() if is_dataclass(kind)
}
_PLAIN_NAMES: Mapping[type, frozenset[str]] = {
    kind: frozenset(one.name for one in fields(kind) if getattr(one.type, "__name__", one.type) in _PLAIN)
    for kind in _CLASSES.values()
    if is_dataclass(kind)
}
MAX_DEPTH, MAX_OBJECTS, MAX_ALIKE = 40, 1_000_000, 1000
"""`MAX_ALIKE`: objects of a table without a difference: a small file names many of them."""


MAX_VALUE_BYTES = 128_000_000
"""Of all distinct values of a document, as JSON: people write long annotations, and many of them."""


class InvalidRecord(ValueError):
    """The document is not what `encode` writes."""


class RecordTooLarge(ValueError):
    """The objects are too large to be written."""


def encode(value: Any) -> Json:  # noqa: ANN401, PLR0911  (one a kind)
    """One value as JSON. Raises TypeError for an object that is not of the engine's input."""
    if value is None or type(value) in (bool, int, str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else ["f", str(value)]
    if isinstance(value, Enum):
        return ["e", type(value).__name__, value.value]
    if isinstance(value, str):
        return str(value)
    if isinstance(value, Resources):
        return ["r", dict(value.amounts)]
    if isinstance(value, Mapping):
        return _encode_mapping(value)
    if isinstance(value, tuple | list):
        return ["t" if isinstance(value, tuple) else "l", *map(encode, value)]
    if isinstance(value, frozenset | set):
        return ["s", *sorted(map(encode, value), key=orjson.dumps)]
    if _CLASSES.get(type(value).__name__) is type(value):
        return ["o", type(value).__name__, {name: encode(getattr(value, name)) for name in _NAMES[type(value)]}]
    raise TypeError(f"{type(value).__name__} cannot be recorded")


def _encode_mapping(value: Mapping[Any, Any]) -> Json:
    if all(type(key) is str for key in value):
        return ["d", {key: encode(one) for key, one in value.items()}]
    return ["m", [[encode(key), encode(one)] for key, one in value.items()]]


def decode(data: Json, depth: int = 0) -> Any:  # noqa: ANN401
    """The value of `encode`. Raises InvalidRecord."""
    if not isinstance(data, list):
        if isinstance(data, dict):
            raise InvalidRecord("An object without a tag.")
        return data
    if depth > MAX_DEPTH or not data:
        raise InvalidRecord("Values are nested too deeply, or one is empty.")
    tag, content = data[0], data[1:]
    try:
        return _READERS[tag](content, lambda one: decode(one, depth + 1))
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        raise InvalidRecord(f"A value with the tag {str(tag)[:20]!r} cannot be read.") from error


Reader = Callable[[Sequence[Json], Callable[[Json], Any]], Any]


def _resources(content: Sequence[Json], _read: Callable[[Json], Any]) -> Resources:
    amounts = {str(name): float(amount) for name, amount in content[0].items()}
    if all(amounts.values()):
        return Resources(amounts)
    limits = Resources()  # as `Resources.parse_limits`: 0 is a limit too
    limits.amounts = MappingProxyType(amounts)
    return limits


def _object(content: Sequence[Json], read: Callable[[Json], Any]) -> object:
    return _class(content[0], is_dataclass)(**{name: read(one) for name, one in content[1].items()})


def _class(name: str, is_meant: Callable[[type], bool]) -> type:
    found = _CLASSES[name]
    if not is_meant(found):
        raise InvalidRecord(f"{name} is another kind of class.")
    return found


_READERS: Mapping[str, Reader] = {
    "t": lambda content, read: tuple(map(read, content)),
    "l": lambda content, read: list(map(read, content)),
    "s": lambda content, read: frozenset(map(read, content)),
    "f": lambda content, _read: {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}[content[0]],
    "e": lambda content, _read: _class(content[0], lambda one: issubclass(one, Enum))(content[1]),
    "r": _resources,
    "d": lambda content, read: {name: read(one) for name, one in content[0].items()},
    "m": lambda content, read: {read(key): read(one) for key, one in content[0]},
    "o": _object,
}


class ValueTable:
    """Values of one document, each once; objects refer to them by position."""

    def __init__(self) -> None:
        self.encoded: list[Json] = []
        self._positions: dict[int, int] = {}
        self._by_content: dict[bytes, int] = {}
        self._bytes = 0
        self._alive: list[object] = []
        """Keeps the objects whose identity is in `_positions`."""

    def position(self, value: object) -> int:
        """Where the value is; it is added if it is new. Raises TypeError and RecordTooLarge."""
        found = self._positions.get(id(value))
        if found is None:
            data = encode(value)
            text = orjson.dumps(data)
            found = self._by_content.setdefault(text, len(self.encoded))
            if found == len(self.encoded):
                self.encoded.append(data)
                self._bytes += len(text)
                if self._bytes > MAX_VALUE_BYTES:
                    raise RecordTooLarge("the values are too large")
            self._positions[id(value)] = found
            self._alive.append(value)
        return found

    def positions(self, values: Sequence[object]) -> Json:
        """A column of positions; one number if all are equal."""
        known, ids = self._positions, list(map(id, values))
        if ids.count(ids[0]) == len(ids):
            return self.position(values[0])
        for one in {id(value): value for value in values}.values():
            self.position(one)
        found = [*map(known.__getitem__, ids)]
        return found[0] if found.count(found[0]) == len(found) else found

    def columns(self, objects: Sequence[Any], *, without: Iterable[str] = ()) -> Json:
        """Objects of one class, field by field: `same`, the fields in which all are equal, and `each`."""
        table: dict[str, Any] = {"count": len(objects), "same": {}, "each": {}}
        if not objects:
            return table
        kind: type[Any] = type(objects[0])
        plain = _PLAIN_NAMES[kind]
        for name in _NAMES[kind]:
            if name in without:
                continue
            column: Any = [*map(attrgetter(name), objects)]
            if name not in plain:
                column = self.positions(column)
            elif column.count(column[0]) == len(column):
                column = column[0]
            table["each" if isinstance(column, list) else "same"][name] = column
        return table


def read_columns(
    kind: type, table: Json, values: Sequence[Any], more: Mapping[str, Sequence[Any]] | None = None
) -> list[Any]:
    """The objects of `ValueTable.columns`. `more`: columns that were left out. Raises InvalidRecord."""
    try:
        count, plain = table["count"], _PLAIN_NAMES[kind]
        if not 0 <= count <= MAX_OBJECTS:
            raise InvalidRecord("A table has too many objects.")
        same = {name: one if name in plain else values[one] for name, one in table["same"].items()}
        each = {
            name: column if name in plain else [values[one] for one in column] for name, column in table["each"].items()
        } | dict(more or {})
        if any(len(column) != count for column in each.values()):
            raise InvalidRecord("A column has another length.")
        if not each and count > MAX_ALIKE:
            raise InvalidRecord("A table has too many equal objects.")
        if not each:
            return [kind(**same) for _ in range(count)]
        return [kind(**same, **dict(zip(each, row, strict=True))) for row in zip(*each.values(), strict=True)]
    except (KeyError, TypeError, IndexError, AttributeError) as error:
        raise InvalidRecord(f"The table of {kind.__name__} cannot be read.") from error
