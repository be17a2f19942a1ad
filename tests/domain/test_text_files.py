"""What an editor changes of a file: only what the person has changed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hekla.domain.text_files import file_content, language_of, read_text


@pytest.mark.parametrize("content", [b"", b"a", b"a\nb\n", b"a\r\nb\r\n", "ü\ufeff\n".encode(), b"\xef\xbb\xbfa\n"])
def test_unchanged_text_is_the_same_file(content: bytes) -> None:
    found = read_text(content)
    assert found is not None
    assert "\r" not in found.text
    assert file_content(found.text.replace("\n", "\r\n"), has_returns=found.has_returns) == content
    assert not found.is_mixed


@given(st.text(st.sampled_from("a\n")))
def test_lines_of_one_kind_come_back(text: str) -> None:
    for content in (text.encode(), text.replace("\n", "\r\n").encode()):
        found = read_text(content)
        assert found is not None
        assert file_content(found.text, has_returns=found.has_returns) == content


@pytest.mark.parametrize("content", [b"a\r\nb\n", b"a\rb", b"a\r\n\r"])
def test_mixed_line_ends_are_marked(content: bytes) -> None:
    found = read_text(content)
    assert found is not None
    assert (found.is_mixed, found.has_returns) == (True, False)


@pytest.mark.parametrize("content", [b"a\0", b"\xff", "a".encode("utf-16")])
def test_other_files_are_no_text(content: bytes) -> None:
    assert read_text(content) is None


def test_languages_by_name() -> None:
    names = ["a.YML", "x.tar.json", "train.py", "run.sh", "README.md", "Makefile", ""]
    assert [language_of(name) for name in names] == ["yaml", "yaml", "python", "shell", "", "", ""]
