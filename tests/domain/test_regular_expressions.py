"""Expressions of others: the same names as with Python's `re`, in linear time."""

import random
import re
import time

import pytest

from hekla.lib.regular_expressions import MAX_LENGTH, RegularExpression, SortedNames, UnsupportedExpression

ATOMS = [
    *"ab01-",
    ".",
    "[ab]",
    "[^a]",
    r"\d",
    r"\D",
    r"\w",
    r"[\d-]",
    "[0-9]",
    "[a-]",
    "^",
    "$",
    r"\-",
    "]",
    "{",
    "a{b",
]
REPEATS = ["*", "+", "?", "{2}", "{1,2}", "{0,}", "*?", "+?"]


def search(expression: str, names: set[str]) -> list[str]:
    return list(RegularExpression(expression).search_all(SortedNames(names)))


def some_expression(luck: random.Random, depth: int = 0) -> str:
    kind = luck.random()
    if depth > 3 or kind < 0.4:
        return luck.choice(ATOMS)
    if kind < 0.6:
        return some_expression(luck, depth + 1) + some_expression(luck, depth + 1)
    inner = some_expression(luck, depth + 1)
    return f"({inner}|{some_expression(luck, depth + 1)})" if kind < 0.75 else f"(?:{inner}){luck.choice(REPEATS)}"


def test_random_expressions_match_as_in_python() -> None:
    luck = random.Random(7)
    for _ in range(3000):
        expression = some_expression(luck)
        names = {"".join(luck.choices("ab01-", k=luck.randint(1, 6))) for _ in range(12)}
        assert search(expression, names) == sorted(name for name in names if re.search(expression, name)), expression


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        (r"^rack-(0|1)[0-9]\.example\.org$", ["rack-01.example.org"]),
        (r"\Arack", ["rack-01.example.org", "rack-21"]),
        (r"21\z", ["rack-21"]),
        ("rack-[2-9]{2}|node", ["node"]),
        ("", ["node", "rack-01.example.org", "rack-21"]),
        ("(|node)$", ["node", "rack-01.example.org", "rack-21"]),
        ("Ö", []),
    ],
)
def test_names_of_machines(expression: str, expected: list[str]) -> None:
    assert search(expression, {"rack-01.example.org", "rack-21", "node"}) == expected


@pytest.mark.parametrize(
    "expression",
    [*("(", ")", "a)", "(a", "[a", "[", "*", "a**", "a{2}{3}", "a{3,2}", "[b-a]", "\\", r"\b", r"\p", r"\1", "(?i)a"),
     *("(?=a)", "(?P<a>b)", "[[:alpha:]]", "a{5000}", "(a{100}){100}", "a" * (MAX_LENGTH + 1), "(" * 999)],
)  # fmt: skip
def test_unsupported_expressions_are_refused(expression: str) -> None:
    with pytest.raises(UnsupportedExpression):
        RegularExpression(expression)


@pytest.mark.parametrize(
    "expression", ["(a+)+$", "(a|aa)+$", "(a|a)*b", ".*.*.*.*.*.*b", "(.*a){20}$", "(a?){30}a{30}$"]
)
def test_hostile_expressions_take_linear_time(expression: str) -> None:
    began = time.process_time()
    search(expression, {"a" * 240 + str(number) for number in range(100)})
    assert time.process_time() - began < 5


def test_effort_is_bounded() -> None:
    luck = random.Random(1)
    names = {"".join(luck.choices("ab", k=200)) for _ in range(200)}
    with pytest.raises(UnsupportedExpression, match="complex"):
        search("a.{200}b", names)
