"""Policies are validated: each problem has a path and a message."""

import pytest

from hekla.domain.errors import Invalid
from hekla.engine.policy import DEFAULT_POLICY_TEXT, parse
from hekla.engine.priority_queue import HeapQueue


def test_default_policy_is_valid() -> None:
    policy = parse(DEFAULT_POLICY_TEXT)
    assert policy.actions == ("enqueue", "allocate", "backfill")
    assert [len(tier) for tier in policy.tiers] == [3, 6]


@pytest.mark.parametrize(
    ("text", "path", "word"),
    [
        ("actions: [", "line 1, column 11", "nvalid YAML"),
        ("[]", "", "mapping"),
        ("actions: ''\ntiers: []", "actions", "At least one action"),
        ("actions: fly", "actions", "nknown action “fly”"),
        ("actions: allocate\ntiers: [{plugins: [{name: magic}]}]", "tiers[0].plugins[0].name", "nknown plugin “magic”"),
        (
            "actions: allocate\ntiers: [{plugins: [{name: gang, enableFun: true}]}]",
            "tiers[0].plugins[0].enableFun",
            "Unknown switch",
        ),
        (
            "actions: allocate\ntiers: [{plugins: [{name: gang, enableJobOrder: 3}]}]",
            "tiers[0].plugins[0].enableJobOrder",
            "true or false",
        ),
        ("actions: allocate\ntiers: 7", "tiers", "list"),
        ("actions: allocate\nextra: 1", "extra", "Unknown field"),
        ("actions: allocate\nconfigurations: [{}]", "configurations[0]", "name of an action"),
    ],
)
def test_problem_has_its_path(text: str, path: str, word: str) -> None:
    with pytest.raises(Invalid) as caught:
        parse(text)
    assert [p for p in caught.value.problems if p.path == path and word in p.message], caught.value.problems


def test_all_problems_are_reported_at_once() -> None:
    with pytest.raises(Invalid) as caught:
        parse("actions: fly\ntiers: [{plugins: [{name: a}, {name: b}]}]")
    assert len(caught.value.problems) == 3


def test_heap_pops_the_least_first() -> None:
    rank = {name: position for position, name in enumerate("dbcae")}
    heap = HeapQueue(lambda left, right: rank[left] < rank[right], "abcde")
    assert [heap.pop() for _ in range(len(heap))] == list("dbcae")
