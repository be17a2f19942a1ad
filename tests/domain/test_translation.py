"""Whoever serves readers says how sentences are looked up; what people typed is never looked up, nor read as one."""

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
def asked() -> Iterator[list[str]]:
    """What is looked up, while sentences are looked up in a few words of Chinese."""
    looked_up: list[str] = []

    def look_up(text: str) -> str:
        looked_up.append(text)
        return CHINESE.get(text, text)

    with patch.object(translation, "_look_up", look_up):
        yield looked_up


def test_a_sentence_is_english_until_somebody_says_how_it_is_looked_up() -> None:
    assert translate("Unknown task {name}. Available: {names}.", name="a", names="b") == (
        "Unknown task a. Available: b."
    )


def test_a_sentence_is_looked_up_and_its_values_stand_in_their_places(asked: list[str]) -> None:
    assert translate("Unknown task {name}. Available: {names}.", names="b", name="a") == "没有 a；现有 b。"


def test_a_sentence_without_values_may_hold_braces(asked: list[str]) -> None:
    assert translate("Write {{ lr }} or {}.") == "Write {{ lr }} or {}."


@pytest.mark.parametrize("name", ["{text}", "{0}", "{text.__class__}", "%(text)s", "a{{b}}"])
def test_what_people_typed_is_neither_looked_up_nor_filled_in(asked: list[str], name: str) -> None:
    with pytest.raises(Invalid) as caught:
        JobSpec.parse({"name": name, "tasks": [{"name": "main", "command": ["true"]}]})
    assert [problem.message for problem in caught.value.problems] == [f"“{name}”？"]
    assert not [text for text in asked if name in text and text not in CHINESE]
