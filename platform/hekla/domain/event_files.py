"""TensorBoard event files: their scalars, from the bytes that programs write.

A file is a sequence of records (TFRecord): the length of the data in 8 bytes, a checksum of these, the data, and a
checksum of the data. The checksums are CRC-32C, masked. The data are a protocol buffer, `Event`, of which this reads
the time, the step, and the scalars of its summary: plain ones, and tensors with one number.

Files are hostile: every length is checked before it is used, and a wrong one ends the reading of the file. Records of
graphs, images and histograms are larger than those of scalars, and are skipped unread.
"""

import contextlib
import math
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import BinaryIO, NamedTuple

_HEADER, _FOOTER = 12, 4
_LARGEST = 64 * 1024
"""Of a record that is read."""
_MOST_RECORDS = 50_000
"""Of one part."""
_MOST_BYTES = 2**40
_MOST_VALUES = 1_000
"""Of one event."""
_LONGEST_TAG = 60
_MASK, _MASK_ROTATION, _WORD = 0xA282EAD8, 15, 0xFFFFFFFF
_CASTAGNOLI = 0x82F63B78
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_VARINT_BITS = 63
_WIDTHS = {_FIXED64: 8, _FIXED32: 4}
_OF_RUNS = frozenset({"train", "training", "validation", "valid", "val", "dev", "eval", "evaluation", "test"})
"""Folders that say which part of a run a file is about."""

# Numbers of fields of Event, Summary, Summary.Value, TensorProto, TensorShapeProto and its Dim
_WALL_TIME, _STEP, _SUMMARY = 1, 2, 5
_VALUE = 1
_TAG, _SIMPLE_VALUE, _TENSOR = 1, 2, 8
_DTYPE, _SHAPE, _CONTENT = 1, 2, 4
_DIM, _SIZE = 2, 1
_TENSOR_TYPES = {1: "<f", 2: "<d", 3: "<i", 4: "<B", 5: "<h", 6: "<b", 9: "<q", 19: "<e", 22: "<I", 23: "<Q"}
_FLOATS, _DOUBLES, _INTEGERS, _LONGS = 5, 6, 7, 10

Field = tuple[int, int, int | bytes]


class Scalar(NamedTuple):
    """A value of a metric. `at`: seconds since 1970."""

    tag: str
    step: int
    value: float
    at: float


@dataclass(slots=True)
class EventPart:
    """The scalars up to `next_offset`, where the next part begins. `is_broken`: what follows is no record."""

    next_offset: int
    scalars: list[Scalar] = field(default_factory=list)
    is_broken: bool = False


def read_part(file: BinaryIO, offset: int, *, size: int, most: int) -> EventPart:
    """The scalars of the whole records from `offset` on, in about `most` bytes. `size`: of the file now."""
    part, budget = EventPart(offset), most
    for _number in range(_MOST_RECORDS):
        begin = part.next_offset
        if budget <= 0 or begin + _HEADER > size:
            break
        file.seek(begin)
        header = file.read(_HEADER)
        length = _length(header)
        if length is None or length > _MOST_BYTES:
            part.is_broken = len(header) == _HEADER
            break
        end = begin + _HEADER + length + _FOOTER
        if end > size:  # the program writes it now
            break
        if length <= _LARGEST:
            record = file.read(length + _FOOTER)
            if len(record) != length + _FOOTER:
                break
            part.scalars += _scalars_of(record[:length], record[length:])
            budget -= len(record)
        budget -= _HEADER
        part.next_offset = end
    return part


def metric_name(folder: str, tag: str) -> str:
    """The name of a tag's metric: with the part of the run that the folder names, as in `validation/loss`."""
    name = "".join(sign for sign in tag if sign.isprintable()).strip()[:_LONGEST_TAG]
    run = folder.rpartition("/")[2].lower()
    return f"{run}/{name}" if name and run in _OF_RUNS else name


def masked_checksum(data: bytes) -> int:
    """The CRC-32C of the data, masked as in records."""
    table, checksum = _table(), _WORD
    for byte in data:
        checksum = table[(checksum ^ byte) & 0xFF] ^ (checksum >> 8)
    checksum ^= _WORD
    return ((checksum >> _MASK_ROTATION | checksum << (32 - _MASK_ROTATION)) + _MASK) & _WORD


@cache
def _table() -> list[int]:
    table = []
    for byte in range(256):
        value = byte
        for _bit in range(8):
            value = value >> 1 ^ (_CASTAGNOLI if value & 1 else 0)
        table.append(value)
    return table


def _length(header: bytes) -> int | None:
    """The length in a header; None if it is incomplete or wrong."""
    if len(header) != _HEADER:
        return None
    length, checksum = struct.unpack("<QI", header)
    return length if masked_checksum(header[:8]) == checksum else None


def _scalars_of(data: bytes, footer: bytes) -> list[Scalar]:
    """The scalars in a record; none if it is no event, or damaged."""
    try:
        found = list(_event(data))
    except (ValueError, struct.error):
        return []
    return found if found and masked_checksum(data) == int.from_bytes(footer, "little") else []


def _event(data: bytes) -> Iterator[Scalar]:
    at, step, values = 0.0, 0, []
    for number, wire, content in _fields(data):
        if number == _WALL_TIME and wire == _FIXED64 and isinstance(content, bytes):
            (at,) = struct.unpack("<d", content)
        elif number == _STEP and isinstance(content, int):
            step = _signed(content)
        elif number == _SUMMARY and wire == _BYTES and isinstance(content, bytes):
            values += [one for key, kind, one in _fields(content) if key == _VALUE and kind == _BYTES]
    for content in values[:_MOST_VALUES]:
        tag, value = _value(content) if isinstance(content, bytes) else ("", None)
        if tag and value is not None and math.isfinite(value):
            yield Scalar(tag, step, value, at if math.isfinite(at) else 0.0)


def _value(data: bytes) -> tuple[str, float | None]:
    tag, value = "", None
    for number, wire, content in _fields(data):
        if not isinstance(content, bytes):
            continue
        if number == _TAG and wire == _BYTES:
            tag = content[: 4 * _LONGEST_TAG].decode(errors="replace")
        elif number == _SIMPLE_VALUE and wire == _FIXED32:
            (value,) = struct.unpack("<f", content)
        elif number == _TENSOR and wire == _BYTES:
            with contextlib.suppress(ValueError, struct.error):
                value = _number(content)
    return tag, value


def _number(tensor: bytes) -> float | None:
    """The number of a tensor that has one; None for any other."""
    kind, found = 0, list[float]()
    for number, wire, content in _fields(tensor):
        if number == _DTYPE and isinstance(content, int):
            kind = content
        elif number == _SHAPE and isinstance(content, bytes):
            if not _is_single(content):
                return None
        elif number == _CONTENT and isinstance(content, bytes) and content:
            layout = _TENSOR_TYPES.get(kind)
            if layout is None or len(content) != struct.calcsize(layout):
                return None
            found.append(float(struct.unpack(layout, content)[0]))
        elif number in (_FLOATS, _DOUBLES, _INTEGERS, _LONGS):
            found.append(_typed(number, wire, content))
    return found[0] if len(found) == 1 else None


def _typed(number: int, wire: int, content: int | bytes) -> float:
    """A number in a field of its type, whether it is packed or not. Raises ValueError, struct.error for several."""
    if isinstance(content, int):
        return float(_signed(content))
    if number in (_FLOATS, _DOUBLES):
        return float(struct.unpack("<f" if number == _FLOATS else "<d", content)[0])
    value, end = _varint(content, 0)
    if wire != _BYTES or end != len(content):
        raise ValueError("several numbers")
    return float(_signed(value))


def _is_single(shape: bytes) -> bool:
    """Whether a shape has one element: every dimension has the size 1."""
    for number, _wire, dimension in _fields(shape):
        if number == _DIM and isinstance(dimension, bytes):
            sizes = [size for key, _kind, size in _fields(dimension) if key == _SIZE]
            if sizes != [1]:
                return False
    return True


def _fields(data: bytes) -> Iterator[Field]:
    """The fields of a message: number, wire type, and content. Raises ValueError."""
    place = 0
    while place < len(data):
        key, place = _varint(data, place)
        number, wire = key >> 3, key & 7
        content: int | bytes
        if wire == _VARINT:
            content, place = _varint(data, place)
        else:
            width = _WIDTHS.get(wire)
            if wire == _BYTES:
                width, place = _varint(data, place)
            if width is None or place + width > len(data):
                raise ValueError("no message")
            content, place = data[place : place + width], place + width
        yield number, wire, content


def _varint(data: bytes, place: int) -> tuple[int, int]:
    """A number of variable length, and the place behind it. Raises ValueError."""
    value = shift = 0
    while place < len(data) and shift <= _VARINT_BITS:
        byte = data[place]
        value |= (byte & 0x7F) << shift
        place, shift = place + 1, shift + 7
        if byte < 0x80:  # noqa: PLR2004  (the mark of the last byte)
            return value & (2**64 - 1), place
    raise ValueError("no number")


def _signed(value: int) -> int:
    return value - 2**64 if value >= 2**63 else value
