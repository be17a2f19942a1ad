"""Scalars of event files: those of real writers are read, and hostile files end the reading early."""

import base64
import io
import struct
import zlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.event_files import event, message, plain, record, scalars, tensor, varint

from hekla.domain import event_files
from hekla.domain.event_files import EventPart, Scalar, masked_checksum, metric_name, read_part

FLOAT, DOUBLE, INT64, HALF, STRING = (varint(1, kind) for kind in (1, 2, 9, 19, 7))
SCALAR, ONE, TWO = message(2, b""), message(2, message(2, varint(1, 1))), message(2, message(2, varint(1, 2)))


TENSORBOARDX = (
    "c-oU-fPlsI-b$SH>!b=MAG+lz#hX-=n3<>NT9%quVr3*g+wqYcRNc)xLPne*M(WwKj#|Q8f?QlV`NhThB_Iu=Kymwzt~DhJP}Q1m"
    "R|Wu8H-J?OFk(^PU?=$_V3I9VeS+u5H*nK|>J7N`xCHa^OH%bqQY%X0i%WBJ6N@UH_&L~xScI537@b%%Qgd?hy*RkoxL80+l09t9"
    "0SK=*I{"
)
TENSORBOARD = (
    "c-r$|fPjCKJmzu+lo%CEK6J}biZ`h!F*8rkwJbHS#L6g0k4vW{HLp0oC@DX&C`GThG&eV~s8X-ID6=HBNG}znDn2bUCp8`-B2&oI"
    "ss}aq=;`oZoFGQ(*|UyX%3O+EEIIkb#ZFutj6w`rEI<i+FJ3NAF81Q&#GJ&UVg*J8o%c=#P~B6%UWf<kZUE~RV8o`s!46Hoo_YQQ"
    "02;D8Km"
)
"""Files of the writers of tensorboardX 2.6.4 and of TensorBoard 2.20.0, compressed. The first has a text too."""


def read(content: bytes, offset: int = 0, most: int = 2**20) -> EventPart:
    return read_part(io.BytesIO(content), offset, size=len(content), most=most)


def values(content: bytes) -> list[tuple[str, int, float]]:
    return [(one.tag, one.step, round(one.value, 4)) for one in read(content).scalars]


def test_checksum_is_that_of_the_format() -> None:
    assert masked_checksum(b"123456789") == ((0xE3069283 >> 15 | 0xE3069283 << 17) + 0xA282EAD8) % 2**32


@pytest.mark.parametrize(
    ("content", "value"),
    [
        (FLOAT + SCALAR + message(4, struct.pack("<f", 0.5)), 0.5),
        (FLOAT + message(5, struct.pack("<f", 0.25)), 0.25),
        (FLOAT + b"\x2d" + struct.pack("<f", 0.125), 0.125),
        (DOUBLE + ONE + message(4, struct.pack("<d", -2.0)), -2.0),
        (DOUBLE + message(6, struct.pack("<d", 3.5)), 3.5),
        (INT64 + message(4, struct.pack("<q", -7)), -7.0),
        (INT64 + varint(10, -7), -7.0),
        (INT64 + message(10, b"\x07"), 7.0),
        (HALF + message(4, struct.pack("<e", 1.5)), 1.5),
        (FLOAT + TWO + message(4, struct.pack("<ff", 1, 2)), None),
        (FLOAT + message(5, struct.pack("<ff", 1, 2)), None),
        (FLOAT + SCALAR + message(4, b"abc"), None),
        (STRING + message(8, b"a text"), None),
        (FLOAT + message(4, struct.pack("<f", float("nan"))), None),
        (b"", None),
        (b"\xff", None),
    ],
)
def test_tensors_with_one_number(content: bytes, value: float | None) -> None:
    found = values(record(event(tensor("loss", content) + plain("other", 1.0), 3)))
    assert found == ([("loss", 3, value)] if value is not None else []) + [("other", 3, 1.0)]


def test_files_of_real_writers() -> None:
    first, second = (values(zlib.decompress(base64.b85decode(text))) for text in (TENSORBOARDX, TENSORBOARD))
    assert first == [("loss/train", 0, 0.5), ("loss/train", 1, 0.25)]
    assert second == [("loss", 0, 0.5), ("loss", 1, 0.25)]


def test_file_is_read_in_parts_while_it_grows() -> None:
    content = record(event(b"", 0)) + scalars("loss", 3.0, 2.0, 1.0)
    for cut in range(len(content)):
        first = read(content[:cut])
        rest = read(content, first.next_offset)
        assert [one.value for one in (*first.scalars, *rest.scalars)] == [3.0, 2.0, 1.0]
        assert (rest.next_offset, first.is_broken, rest.is_broken) == (len(content), False, False)
    part = read(content, most=60)
    assert len(part.scalars) < 3
    assert read(content, part.next_offset).next_offset == len(content)


def test_large_records_are_skipped_unread() -> None:
    picture = record(event(message(1, message(1, b"picture") + message(4, bytes(100_000))), 1))
    content = scalars("a", 1.0) + picture + scalars("b", 2.0)
    assert values(content) == [("a", 0, 1.0), ("b", 0, 2.0)]


def test_damaged_record_is_left_out_and_a_wrong_length_ends_the_file() -> None:
    damaged = bytearray(scalars("a", 1.0, 2.0))
    damaged[-6] ^= 1
    assert values(bytes(damaged)) == [("a", 0, 1.0)]
    wrong = bytearray(scalars("a", 1.0, 2.0))
    wrong[len(wrong) // 2] ^= 1
    part = read(bytes(wrong))
    assert (part.is_broken, part.next_offset, len(part.scalars)) == (True, len(wrong) // 2, 1)
    length = struct.pack("<Q", 2**63)
    assert read(length + struct.pack("<I", masked_checksum(length)) + bytes(99)).is_broken


def test_values_and_tags_are_bounded() -> None:
    many = record(event(b"".join(plain(f"m{number}", 1.0) for number in range(1500)), 0))
    assert len(read(many).scalars) == 1000
    assert values(record(event(plain("", 1.0) + plain("inf", float("inf")), 0))) == []
    assert read(record(event(plain("a", 1.0), -5, float("inf")))).scalars == [Scalar("a", -5, 1.0, 0.0)]


@pytest.mark.parametrize(
    ("folder", "tag", "name"),
    [
        ("", "loss", "loss"), ("runs/Nov28_host", "a/b", "a/b"), ("logs/validation", "loss", "validation/loss"),
        ("Train", "epoch_loss", "train/epoch_loss"), ("", " \x1b[31m\u202eloss\n", "[31mloss"), ("val", "\n", ""),
        ("", "x" * 100, "x" * 60),
    ],
)  # fmt: skip
def test_names(folder: str, tag: str, name: str) -> None:
    assert metric_name(folder, tag) == name


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=300), st.integers(0, 400))
def test_any_bytes_are_safe(content: bytes, offset: int) -> None:
    for data in (content, record(content), record(event(content, 1)), record(event(message(1, content), 1)),
                 record(event(tensor("a", content), 1))):  # fmt: skip
        part = read(data, min(offset, len(data)))
        assert part.next_offset <= len(data)
        assert all(abs(one.value) < float("inf") for one in part.scalars)


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_changed_bytes_are_safe(data: st.DataObject) -> None:
    content = bytearray(
        scalars("loss", 1.0, 2.0) + record(event(tensor("a", FLOAT + SCALAR + message(4, bytes(4))), 1))
    )
    for place in data.draw(st.lists(st.integers(0, len(content) - 1), max_size=4)):
        content[place] = data.draw(st.integers(0, 255))
    part = read(bytes(content))
    assert part.next_offset <= len(content)
    assert len(part.scalars) <= 3


def test_endless_empty_records_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_files, "_MOST_RECORDS", 10)
    content = record(b"") * 20
    assert read(content).next_offset == len(content) // 2
