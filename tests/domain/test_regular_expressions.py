"""Expressions of others: RE2 decides which names they occur in, in linear time."""

import time

import pytest

from hekla.lib.regular_expressions import UnsupportedExpression, search_all


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        (r"^rack-(0|1)[0-9]\.example\.org$", {"rack-01.example.org"}),
        (r"\Arack", {"rack-01.example.org", "rack-21"}),
        (r"21\z", {"rack-21"}),
        ("rack-[2-9]{2}|node", {"node"}),
        ("(?i)NODE", {"node"}),
        ("", {"node", "rack-01.example.org", "rack-21"}),
        ("Ö", set()),
    ],
)
def test_names_of_machines(expression: str, expected: set[str]) -> None:
    assert search_all(expression, ["rack-01.example.org", "rack-21", "node"]) == expected


@pytest.mark.parametrize(
    "expression", ["(", "[a", "*", "a{3,2}", "\\", r"\1", "(?=a)", "a{5000}", "(a{100}){100}", "a" * 5000, "\ud800"]
)
def test_unsupported_expressions_are_refused(expression: str) -> None:
    with pytest.raises(UnsupportedExpression):
        search_all(expression, ["a"])


@pytest.mark.parametrize(
    "expression", ["(a+)+$", "(a|aa)+$", "(a|a)*b", ".*.*.*.*.*.*b", "(.*a){20}$", "(a?){30}a{30}$", "a.{200}b"]
)
def test_hostile_expressions_take_linear_time(expression: str) -> None:
    began = time.process_time()
    search_all(expression, ["a" * 240 + str(number) for number in range(100)])
    assert time.process_time() - began < 5
