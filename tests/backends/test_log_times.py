"""When the lines of a log arrived: what the shim notes, and what readers make of it."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hekla.backends.local import log_times
from hekla.backends.local.log_times import MARK, LogClock, read_times
from hekla.backends.logs import line_times


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The time in milliseconds, which a test sets."""
    now = [1_000_000]
    monkeypatch.setattr(log_times.time, "time_ns", lambda: now[0] * 1_000_000)
    return now


def write(path: Path, clock: list[int], *lines: tuple[int, str]) -> LogClock:
    """A log of these lines, each with its time."""
    marks, log = LogClock(f"{path}.times"), os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    for clock[0], line in lines:
        marks.mark(log)
        os.write(log, line.encode())
    os.close(log)
    return marks


def test_marks_say_when_bytes_arrived(tmp_path: Path, clock: list[int]) -> None:
    path = tmp_path / "log"
    write(path, clock, (5000, "a\n"), (5050, "b\n"), (5200, "c\n"), (4000, "the clock was set back\n"))
    assert read_times(f"{path}.times", 0, 99) == [(0, 5000), (4, 5200), (6, 4000)]
    assert read_times(f"{path}.times", 5, 99) == [(4, 5200), (6, 4000)]
    assert read_times(f"{path}.times", 0, 3) == [(0, 5000)]
    assert read_times(f"{path}.none", 0, 3) == []


def test_full_file_says_that_the_rest_is_unknown(
    tmp_path: Path, clock: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_times, "MAX_BYTES", 3 * MARK.size)
    path = tmp_path / "log"
    write(path, clock, *((n * 1000, "x\n") for n in range(1, 9)))
    assert read_times(f"{path}.times", 0, 99) == [(0, 1000), (2, 2000), (4, 0)]


def test_times_behind_the_most_marks_of_a_read_are_unknown(
    tmp_path: Path, clock: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_times, "MAX_MARKS", 3)
    path = tmp_path / "log"
    write(path, clock, *((n * 1000, "x\n") for n in range(1, 6)))
    assert read_times(f"{path}.times", 0, 99) == [(0, 1000), (2, 2000), (4, 0)]
    assert read_times(f"{path}.times", 4, 99) == [(4, 3000), (6, 4000), (8, 5000)]


@given(st.binary(max_size=200), st.integers(0, 2**40))
def test_any_file_can_be_read(tmp_path_factory: pytest.TempPathFactory, content: bytes, begin: int) -> None:
    path = tmp_path_factory.getbasetemp() / "any.times"
    path.write_bytes(content)
    assert all(at < 2**43 for _offset, at in read_times(str(path), begin, begin + 100))


def test_link_in_place_of_the_file_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(MARK.pack(0, 1))
    (tmp_path / "log.times").symlink_to(tmp_path / "secret")
    assert read_times(str(tmp_path / "log.times"), 0, 9) == []


@pytest.mark.parametrize(
    ("data", "offset", "times", "lines"),
    [
        (b"a\nb\nc", 0, [(0, 1), (2, 2)], [(0, 1), (1, 2)]),
        (b"a\nb\nc", 10, [(4, 1), (13, 3)], [(0, 1), (2, 3)]),
        (b"long line\nb", 0, [(0, 1), (4, 2), (6, 3)], [(0, 1), (1, 3)]),
        (b"a\n", 0, [(0, 1), (2, 9)], [(0, 1), (1, 9)]),
        (b"note\na\n", 0, [(5, 1)], [(1, 1)]),
        (b"", 0, [], []),
    ],
)
def test_time_of_a_line_is_that_of_its_first_byte(
    data: bytes, offset: int, times: list[tuple[int, int]], lines: list[tuple[int, int]]
) -> None:
    assert line_times(data, offset, times) == lines
