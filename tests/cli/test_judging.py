"""Verdicts on recorded scenarios: only the certain part of a recording counts."""

from typing import Any

import pytest

from hekla.cli.judging import CaseVerdict, judge

POD = {"metadata": {"namespace": "n", "name": "p", "annotations": {"scheduling.k8s.io/group-name": "g"}}}


def cycle(node: str = "", evicted: tuple[str, ...] = (), phase: str = "Inqueue", **group: Any) -> dict[str, Any]:
    return {
        "binds": {"n/p": node} if node else {},
        "evicted": list(evicted),
        "pipelined": {},
        "podGroups": {"n/g": {"phase": phase} | group},
    }


def recorded(**more: Any) -> dict[str, Any]:
    return {"family": "f", "deterministic": True, "expect": {"cycles": [cycle("a")]}, "canonical": "same"} | more


def nondeterministic(**more: Any) -> dict[str, Any]:
    outcomes = {"otherOutcomes": [{"cycles": [cycle("b")]}], "canonical": "outcome 1", "outcomeSet": "closed"}
    return recorded(deterministic=False, **outcomes | more)


@pytest.mark.parametrize(
    ("document", "answer", "verdict"),
    [
        (recorded(), [cycle("a")], CaseVerdict(True, exact=True, canonical=True)),
        (recorded(), [cycle("b")], CaseVerdict(False, exact=False, canonical=False)),
        (recorded(), [], CaseVerdict(False, exact=False, canonical=False)),
        (nondeterministic(), [cycle("a")], CaseVerdict(True, canonical=False)),
        (nondeterministic(), [cycle("b")], CaseVerdict(True, canonical=True)),
        (nondeterministic(), [cycle("c")], CaseVerdict(False, canonical=False)),
        (nondeterministic(canonical=None), [cycle("b")], CaseVerdict(True)),
        (recorded(expect={}), [cycle("a")], None),
    ],
)
def test_verdict_on_a_recorded_scenario(
    document: dict[str, Any], answer: list[dict[str, Any]], verdict: CaseVerdict | None
) -> None:
    assert judge(document, answer) == verdict


@pytest.mark.parametrize(
    ("expected", "answer", "is_met"),
    [
        ({"bindMap": {"n/p": "a"}}, cycle("a"), True),
        ({"bindMap": {"n/p": "a"}, "bindsNum": 7}, cycle("a"), True),
        ({"bindsNum": 1}, cycle("b"), True),
        ({"bindsNum": 0}, cycle("b"), False),
        ({"evicted": ["n/p"]}, cycle(), False),
        ({"pipelinedNodes": {"n/g": ["a"]}}, cycle() | {"pipelined": {"n/p": "a"}}, True),
        ({"pipelinedNodes": {"n/g": ["a"]}}, cycle(), False),
        ({"podGroupPhase": {"n/g": "Inqueue"}}, cycle(phase="Unknown", phaseBeforeClose="Inqueue"), True),
        ({"taskStatusNums": {"n/g": {"Binding": 1}}}, cycle(taskStatus={"Binding": 1}), True),
        ({"bindNumsPerLowestHyperNode": [1]}, cycle("a"), True),
        ({"bindNumsPerLowestHyperNode": [2]}, cycle("a"), False),
    ],
)
def test_verdict_on_a_recorded_unit_test(expected: dict[str, Any], answer: dict[str, Any], is_met: bool) -> None:
    cluster = {"pods": [POD], "hyperNodesByTier": {"1": ["s"]}, "hyperNodeRealNodes": {"s": ["a", "b"]}}
    assert judge({"cluster": cluster, "expect": expected}, [answer]) == CaseVerdict(is_met)
    assert judge({"cluster": cluster, "expect": expected, "portable": False}, [answer]) is None
