"""Secrets in the output of a terminal are masked, however the output is divided, wrapped or coloured."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hekla.lib import masking
from hekla.lib.masking import MASK, SecretMask

SECRET = "correct-horse 中文"
_BYTES = SECRET.encode()
_PIECES = st.sampled_from([
    _BYTES, b"correct", b"horse", b"\x1b[31m", b"\x1b]0;title\x07", b" \r", b"\r\n", b"x", "中".encode(), b"\x1b",
    _BYTES[:5] + b"\x1b[1m" + _BYTES[5:], _BYTES[:9] + b" \r" + _BYTES[9:],
    b"\r\n".join(_BYTES[n : n + 1] for n in range(len(_BYTES))),
])  # fmt: skip


def masked(pieces: list[bytes], *secrets: str) -> bytes:
    mask = SecretMask(secrets)
    return b"".join(map(mask.feed, pieces)) + mask.flush()


@given(st.lists(_PIECES, max_size=12), st.lists(st.integers(1, 20), min_size=1, max_size=8))
def test_no_division_of_the_output_shows_a_secret(pieces: list[bytes], sizes: list[int]) -> None:
    whole, divided, number = b"".join(pieces), [], 0
    rest = whole
    while rest:
        size = sizes[number % len(sizes)]
        divided.append(rest[:size])
        rest, number = rest[size:], number + 1
    found = masked(divided, SECRET)
    assert found == masked([whole], SECRET)
    assert _BYTES not in masking._NOISE.sub(b"", found)


@given(st.lists(st.binary(max_size=40), max_size=8))
def test_other_output_is_unchanged(pieces: list[bytes]) -> None:
    found = b"".join(pieces)
    assert masked(pieces, "never-printed-in-a-test") == found
    assert masked(pieces) == found


@pytest.mark.parametrize(
    ("secrets", "printed", "expected"),
    [
        ([SECRET], f"login {SECRET}!", "login ******!"),
        (["abc"], "abc", "abc"),  # too short
        (["abcd", "abcdefgh"], "abcdefgh abcd", "****** ******"),
        (["first line\nsecond line\n"], "cat\r\nsecond line\r\n", "cat\r\n******\r\n"),
        (["first line\nsecond line"], "first line\r\nsecond line", "******"),
        (["a.c+d"], "abccd a.c+d", "abccd ******"),
        (["x" * 1300], "x" * 1300, "*" * 18),
    ],
)
def test_what_is_masked(secrets: list[str], printed: str, expected: str) -> None:
    assert masked([printed.encode()], *secrets).decode() == expected


def test_later_secrets_are_masked_from_then_on() -> None:
    mask = SecretMask([])
    assert mask.feed(b"open-sesame") == b"open-sesame"
    mask.learn(["open-sesame"])
    assert mask.feed(b"open-sesame.") == MASK + b"."


def test_hostile_output_takes_no_long_time() -> None:
    """Unfinished sequences, and beginnings of a long secret again and again."""
    mask, began = SecretMask(["a" * 5000]), time.process_time()
    for piece in (b"\x1b]" * 50_000, b"\x1b[" + b"1;" * 50_000, b"a" * 500 + b"b", b" " * 100_000) * 5:
        mask.feed(piece)
    assert time.process_time() - began < 5
    assert len(mask.flush()) < 1000
