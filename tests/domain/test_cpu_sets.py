"""Sets of CPUs, as Linux writes them."""

import pytest

from hekla.domain.cpu_sets import format_cpus, parse_cpus


@pytest.mark.parametrize(
    ("text", "want"), [("", set()), ("0\n", {0}), ("0-3,8", {0, 1, 2, 3, 8}), ("8,0-1,10-11", {0, 1, 8, 10, 11})]
)
def test_text_is_parsed(text, want):
    assert parse_cpus(text) == want


@pytest.mark.parametrize("text", ["x", "-1", "3-1", "4096", "0-999999999", "1-2-3"])
def test_other_texts_are_rejected(text):
    with pytest.raises(ValueError, match=r"is not valid|invalid literal"):
        parse_cpus(text)


@pytest.mark.parametrize("text", ["", "5", "0-3,8", "0,2,4-5"])
def test_written_set_is_the_shortest(text):
    assert format_cpus(parse_cpus(text)) == text
