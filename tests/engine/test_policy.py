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
        ("actions: [", "line 2, column 1", "nvalid YAML"),
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


def test_earlier_name_of_a_plugin_is_still_read() -> None:
    (tier,) = parse("actions: allocate\ntiers: [{plugins: [{name: numaaware}, {name: numa-aware}]}]").tiers
    assert [option.name for option in tier] == ["numa-aware", "numa-aware"]


def test_heap_pops_the_least_first() -> None:
    rank = {name: position for position, name in enumerate("dbcae")}
    heap = HeapQueue(lambda left, right: rank[left] < rank[right], "abcde")
    assert [heap.pop() for _ in range(len(heap))] == list("dbcae")


_BOMB = "a: &a [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{name}: &{name} [{', '.join([f'*{former}'] * 10)}]\n" for former, name in zip("abcdefgh", "bcdefghi", strict=True)
)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (_BOMB, "more than 10,000 entries"),
        ("tiers: " + "[" * 5_000 + "]" * 5_000, "nested more than 64 levels"),
        ("tiers: &t [*t]", "undefined or refers to itself"),
        ("tiers: [{<<: &m {a: 1}, <<: *n}]", "undefined"),
        ("tiers: 2026-02-31", "Invalid YAML"),
        ("tiers: " + "9" * 5_000, "Invalid YAML"),
        ("tiers: \ud800", "Invalid YAML"),
        ("actions: enqueue # " + "x" * 100_000, "larger than 100 kB"),
    ],
)
def test_text_out_of_bounds_is_refused(text: str, problem: str) -> None:
    with pytest.raises(Invalid) as refusal:
        parse(text)
    assert problem in str(refusal.value)


def test_aliases_within_bounds_are_expanded() -> None:
    text = "actions: enqueue\ntiers:\n- plugins: &plugins [{name: gang}]\n- plugins: *plugins\n"
    parsed = parse(text)
    assert [[option.name for option in tier] for tier in parsed.tiers] == [["gang"], ["gang"]]
