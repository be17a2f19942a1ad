"""Translation: the caller sets the lookup of sentences; user input is never looked up or used as a format."""

from collections.abc import Iterator
from unittest.mock import patch

import pytest

from hekla.domain import translation
from hekla.domain.errors import Invalid
from hekla.domain.jobspec import JobSpec
from hekla.domain.translation import translate

CHINESE = {
    "Unknown task {name}. Available: {names}.": "没有 {name}；现有 {names}。",
    "{text} is not a valid name. Use lowercase letters a–z, digits and hyphens. The first and last character "
    "must be a letter or digit.": "{text}？",
}


@pytest.fixture
def lookups() -> Iterator[list[str]]:
    """The looked-up sentences, with a lookup of some Chinese translations."""
    looked_up: list[str] = []

    def look_up(text: str) -> str:
        looked_up.append(text)
        return CHINESE.get(text, text)

    with patch.object(translation, "_look_up", look_up):
        yield looked_up


def test_without_a_lookup_sentences_are_english() -> None:
    assert translate("Unknown task {name}. Available: {names}.", name="a", names="b") == (
        "Unknown task a. Available: b."
    )


def test_sentence_is_looked_up_before_its_values_are_filled_in(lookups: list[str]) -> None:
    assert translate("Unknown task {name}. Available: {names}.", names="b", name="a") == "没有 a；现有 b。"


def test_sentence_without_values_may_contain_braces(lookups: list[str]) -> None:
    assert translate("Write {{ lr }} or {}.") == "Write {{ lr }} or {}."


@pytest.mark.parametrize("name", ["{text}", "{0}", "{text.__class__}", "%(text)s", "a{{b}}"])
def test_user_input_is_neither_looked_up_nor_formatted(lookups: list[str], name: str) -> None:
    with pytest.raises(Invalid) as caught:
        JobSpec.parse({"name": name, "tasks": [{"name": "main", "command": ["true"]}]})
    assert [problem.message for problem in caught.value.problems] == [f"“{name}”？"]
    assert not [text for text in lookups if name in text and text not in CHINESE]
