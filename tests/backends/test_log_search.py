"""Searching a log: every line once, whatever the pieces, and nothing missed at a seam."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hekla.backends import log_search
from hekla.backends.base import LogChunk, PodKey
from hekla.backends.log_search import LogQuery, search_log

KEY = PodKey("job", "main", 0, 1)


class Log:
    """A backend that has one log."""

    def __init__(self, data: bytes) -> None:
        self.data = data

    def logs(self, _key, *, offset, limit):
        data = self.data[offset : offset + limit]
        return LogChunk(data, offset, offset + len(data), complete=True)


def look(data: bytes, needle: LogQuery, most: int = 100) -> list[log_search.LogMatch]:
    """All hits, however many calls it takes."""
    hits, offset, line = [], 0, 1
    for _ in range(10_000):
        found = search_log(Log(data), KEY, needle, offset=offset, line=line, most=most, ended=True)
        hits += found.hits
        if found.complete:
            return hits
        assert found.next_offset > offset
        offset, line = found.next_offset, found.next_line
    raise AssertionError("it never came to the end")


def test_lines_have_numbers_and_places():
    data = "eins\nzwei 火山\r\ndrei\nzwei\n".encode()
    hits = look(data, LogQuery("zwei"))
    assert [(hit.line, hit.text) for hit in hits] == [(2, "zwei 火山"), (4, "zwei")]
    assert [data[hit.offset :][:4] for hit in hits] == [b"zwei", b"zwei"]


@pytest.mark.parametrize(("ignore_case", "lines"), [(True, [1, 2, 3]), (False, [2])])
def test_case_matters_unless_it_is_to_be_ignored(ignore_case, lines):
    hits = look(b"ERROR\nerror\nError\nfine\n", LogQuery("error", ignore_case=ignore_case))
    assert [hit.line for hit in hits] == lines


def test_the_needle_is_text_and_no_pattern():
    assert [hit.line for hit in look(b"a.c\nabc\n[a-z]\n", LogQuery("a.c"))] == [1]
    assert [hit.line for hit in look(b"a.c\nabc\n[a-z]\n", LogQuery("[a-z]"))] == [3]


WORDS = st.text(alphabet="abAB火\r é", max_size=12)


@given(
    st.lists(WORDS, max_size=60), st.text(alphabet="abAB火é", min_size=1, max_size=3), st.booleans(), st.integers(1, 5)
)
def test_it_finds_what_a_plain_look_finds(lines, text, ignore_case, most):
    """In pieces so small that every seam is met; a letter never becomes another number of letters here."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(log_search, "_CHUNK", 97)
        patch.setattr(log_search, "MAX_BYTES", 200)
        hits = look("\n".join(lines).encode(), LogQuery(text, ignore_case=ignore_case), most)
    held = [line.lower() if ignore_case else line for line in "\n".join(lines).split("\n")]
    wanted = text.lower() if ignore_case else text
    assert [hit.line for hit in hits] == [n for n, line in enumerate(held, start=1) if wanted in line]


@given(st.integers(0, 300), st.integers(0, 300))
def test_in_a_line_longer_than_a_piece_nothing_is_missed(before, behind):
    data = b"first\n" + b"." * before + b"needle" + b"." * behind + b"\nlast needle\n"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(log_search, "_CHUNK", 97)
        hits = look(data, LogQuery("needle"))
    assert {hit.line for hit in hits} == {2, 3}
    assert hits[-1].line == 3


def test_of_a_long_line_the_surroundings_are_told_and_nothing_steers_a_terminal():
    (hit,) = look(b"x" * 5000 + b"\x1b[31mneedle\x07" + b"y" * 5000, LogQuery("needle"))
    assert "needle" in hit.text
    assert len(hit.text) <= log_search._EXCERPT + 2
    assert hit.text[0] == hit.text[-1] == "…"
    assert "\x1b" not in hit.text
    assert "\x07" not in hit.text


def test_one_call_looks_through_a_bounded_part(monkeypatch):
    monkeypatch.setattr(log_search, "_CHUNK", 1000)
    monkeypatch.setattr(log_search, "MAX_BYTES", 3000)
    found = search_log(Log(b"line\n" * 10_000), KEY, LogQuery("no"), offset=0, line=1, most=10, ended=True)
    assert (found.hits, found.complete) == ((), False)
    assert 3000 <= found.next_offset < 4000
    assert found.next_line == found.next_offset // 5 + 1
