"""Event files as TensorBoard's writers make them, for tests: records of events with scalars."""

import struct

from hekla.domain.event_files import masked_checksum


def record(data: bytes) -> bytes:
    """A record with its length and checksums."""
    length = struct.pack("<Q", len(data))
    return length + struct.pack("<I", masked_checksum(length)) + data + struct.pack("<I", masked_checksum(data))


def message(number: int, content: bytes) -> bytes:
    """A field that is a message, text or bytes."""
    size, length = b"", len(content)
    while length > 0x7F:
        size, length = size + bytes([length & 0x7F | 0x80]), length >> 7
    return bytes([number << 3 | 2]) + size + bytes([length]) + content


def varint(number: int, value: int) -> bytes:
    """A field that is a number of variable length."""
    value, found = value % 2**64, bytes([number << 3])
    while value > 0x7F:
        found, value = found + bytes([value & 0x7F | 0x80]), value >> 7
    return found + bytes([value])


def event(summary: bytes, step: int, at: float = 1.0e9) -> bytes:
    return b"\x09" + struct.pack("<d", at) + varint(2, step) + message(5, summary)


def plain(tag: str, value: float) -> bytes:
    """A value of a summary as PyTorch writes it."""
    return message(1, message(1, tag.encode()) + b"\x15" + struct.pack("<f", value))


def tensor(tag: str, content: bytes) -> bytes:
    """A value of a summary as TensorFlow 2 writes it."""
    return message(1, message(1, tag.encode()) + message(8, content))


def scalars(tag: str, *values: float, at: float = 1.0e9) -> bytes:
    """A file with one metric; the steps count from 0."""
    return b"".join(record(event(plain(tag, value), step, at + step)) for step, value in enumerate(values))
