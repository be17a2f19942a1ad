"""Log search: every line once, whatever the chunks, and no match lost between chunks."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hekla.backends import log_search
from hekla.backends.base import PodKey
from hekla.backends.log_chunk import LogChunk
from hekla.backends.log_search import LogQuery, search_log

KEY = PodKey("job", "main", 0, 1)


class LogBackend:
    """A backend with one log."""

    def __init__(self, data: bytes) -> None:
        self.data = data

    def logs(self, _key, *, offset, limit):
        data = self.data[offset : offset + limit]
        return LogChunk(data, offset, offset + len(data), complete=True)


def search_all(data: bytes, needle: LogQuery, most: int = 100) -> list[log_search.LogMatch]:
    """All matches, in as many calls as needed."""
    hits, offset, line = [], 0, 1
    for _ in range(10_000):
        found = search_log(LogBackend(data), KEY, needle, offset=offset, line=line, most=most, ended=True)
        hits += found.hits
        if found.complete:
            return hits
        assert found.next_offset > offset
        offset, line = found.next_offset, found.next_line
    raise AssertionError("the search never completed")


def test_matches_have_line_numbers_and_offsets():
    data = "eins\nzwei 火山\r\ndrei\nzwei\n".encode()
    hits = search_all(data, LogQuery("zwei"))
    assert [(hit.line, hit.text) for hit in hits] == [(2, "zwei 火山"), (4, "zwei")]
    assert [data[hit.offset :][:4] for hit in hits] == [b"zwei", b"zwei"]


@pytest.mark.parametrize(("ignore_case", "lines"), [(True, [1, 2, 3]), (False, [2])])
def test_case_can_be_ignored(ignore_case, lines):
    hits = search_all(b"ERROR\nerror\nError\nfine\n", LogQuery("error", ignore_case=ignore_case))
    assert [hit.line for hit in hits] == lines


def test_needle_is_text_and_no_pattern():
    assert [hit.line for hit in search_all(b"a.c\nabc\n[a-z]\n", LogQuery("a.c"))] == [1]
    assert [hit.line for hit in search_all(b"a.c\nabc\n[a-z]\n", LogQuery("[a-z]"))] == [3]


WORDS = st.text(alphabet="abAB火\r é", max_size=12)


@given(
    st.lists(WORDS, max_size=60), st.text(alphabet="abAB火é", min_size=1, max_size=3), st.booleans(), st.integers(1, 5)
)
def test_search_equals_a_plain_search(lines, text, ignore_case, most):
    """The chunks are small, so every boundary is met. No character here changes its length in lower case."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(log_search, "_CHUNK", 97)
        patch.setattr(log_search, "MAX_BYTES", 200)
        hits = search_all("\n".join(lines).encode(), LogQuery(text, ignore_case=ignore_case), most)
    searched = [line.lower() if ignore_case else line for line in "\n".join(lines).split("\n")]
    needle = text.lower() if ignore_case else text
    assert [hit.line for hit in hits] == [n for n, line in enumerate(searched, start=1) if needle in line]


@given(st.integers(0, 300), st.integers(0, 300))
def test_match_in_a_line_longer_than_a_chunk_is_found(before, behind):
    data = b"first\n" + b"." * before + b"needle" + b"." * behind + b"\nlast needle\n"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(log_search, "_CHUNK", 97)
        hits = search_all(data, LogQuery("needle"))
    assert {hit.line for hit in hits} == {2, 3}
    assert hits[-1].line == 3


def test_long_line_is_an_excerpt_without_control_characters():
    (hit,) = search_all(b"x" * 5000 + b"\x1b[31mneedle\x07" + b"y" * 5000, LogQuery("needle"))
    assert "needle" in hit.text
    assert len(hit.text) <= log_search._EXCERPT + 2
    assert hit.text[0] == hit.text[-1] == "…"
    assert "\x1b" not in hit.text
    assert "\x07" not in hit.text


def test_one_call_searches_a_limited_part(monkeypatch):
    monkeypatch.setattr(log_search, "_CHUNK", 1000)
    monkeypatch.setattr(log_search, "MAX_BYTES", 3000)
    found = search_log(LogBackend(b"line\n" * 10_000), KEY, LogQuery("no"), offset=0, line=1, most=10, ended=True)
    assert (found.hits, found.complete) == ((), False)
    assert 3000 <= found.next_offset < 4000
    assert found.next_line == found.next_offset // 5 + 1
