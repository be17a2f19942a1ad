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
        (["x" * 1300], "x" * 1300, "******"),
        (["abcdefgh", "efghij"], "abcdefghij efghi", "****** efghi"),
        (["hunter2secret"], "\x1b]0;mysql -phunter2secret\x07$ ", "\x1b]0;mysql -p******\x07$ "),
        (
            ["hunter2secret"],
            "\x1b]2;hunter2secret\x1b\\\x1b[1mhunter2\x1b[0msecret",
            "\x1b]2;******\x1b\\\x1b[1m******",
        ),
    ],
)
def test_what_is_masked(secrets: list[str], printed: str, expected: str) -> None:
    assert masked([printed.encode()], *secrets).decode() == expected


@pytest.mark.parametrize("cut", range(1, 30))
def test_a_secret_in_a_title_is_masked_however_it_is_divided(cut: int) -> None:
    printed = b"\x1b]0;mysql -phunter2secret\x07$ "
    assert masked([printed[:cut], printed[cut:]], "hunter2secret") == printed.replace(b"hunter2secret", MASK)


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


def test_what_is_held_back_is_bounded() -> None:
    """The first byte of a secret, then control codes without end."""
    mask = SecretMask(["open-sesame"])
    mask.feed(b"o")
    found = b"".join(mask.feed(b"\x1b[1m" * 100) for _ in range(50))
    assert len(found) > 15_000
    assert len(mask.flush()) < 5000


def test_many_secrets_take_no_long_time() -> None:
    """As many as a job may have, each line of them counts: a piece of output holds up all pages of the process."""
    lines = [f"{number:05d}"[::-1] for number in range(5000)]
    mask, began = SecretMask(["\n".join(lines)]), time.process_time()
    assert mask.feed(b"0123" * 16_384 + lines[4321].encode() + b".").endswith(MASK + b".")
    assert time.process_time() - began < 1
