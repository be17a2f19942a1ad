"""Sub-groups of a gang, formed by Volcano's `subGroupPolicy`."""

import pytest
from tests.engine.kubernetes import Object, document, node, pod

from hekla.engine import scenario
from hekla.engine.scheduler_cache import SchedulerCache
from hekla.engine.subjobs import subjobs_of

PODS = {
    "ps": {"role": "ps", "part": "0"},
    "w0": {"role": "worker", "part": "1"},
    "w1": {"role": "worker", "part": "1", "spot": "yes"},
    "v0": {"role": "viewer", "part": "2"},
    "v1": {"part": ""},
    "x": {},
}


def sub_groups(**policy: object) -> list[str]:
    """The pod names of each sub-group that the policy forms, separated by spaces."""
    scenario_document = document([node("n")], [pod(name, labels=labels) for name, labels in PODS.items()], plugins=[])
    scenario_document["cluster"]["podGroups"][0]["spec"]["subGroupPolicy"] = [{"name": "p", **policy}]
    read = scenario.read(scenario_document)
    (info,) = SchedulerCache.of(read.state).jobs.values()
    return [" ".join(sorted(m.spec.name for m in group.pods)) for group in subjobs_of(info) if group.policy]


def expression(key: str, operator: str, *values: str) -> Object:
    return {"key": key, "operator": operator} | ({"values": list(values)} if values else {})


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        (None, ["ps", "w0 w1", "v0"]),
        ({}, ["ps", "w0 w1", "v0"]),
        ({"matchLabels": {"role": "worker"}}, ["w0 w1"]),
        ({"matchExpressions": [expression("role", "In", "ps", "viewer")]}, ["ps", "v0"]),
        ({"matchExpressions": [expression("role", "NotIn", "worker")]}, ["ps", "v0"]),
        ({"matchExpressions": [expression("spot", "Exists")]}, ["w1"]),
        ({"matchExpressions": [expression("spot", "DoesNotExist")]}, ["ps", "w0", "v0"]),
        ({"matchExpressions": [expression("role", "Exists"), expression("part", "NotIn", "1")]}, ["ps", "v0"]),
        ({"matchLabels": {"role": "worker"}, "matchExpressions": [expression("spot", "DoesNotExist")]}, ["w0"]),
        ({"matchLabels": {"role": "worker"}, "matchExpressions": [expression("role", "In", "ps")]}, []),
    ],
)
def test_selected_pods_are_grouped_by_the_label_keys(selector: Object | None, expected: list[str]) -> None:
    assert sub_groups(labelSelector=selector, matchLabelKeys=["part"]) == expected


@pytest.mark.parametrize(
    "wrong",
    [
        expression("part", "Gt", "0"),
        expression("part", "Nearly"),
        expression("part", "NotIn"),
        expression("part", "Exists", "1"),
    ],
)
def test_invalid_selector_matches_nothing(wrong: Object) -> None:
    assert sub_groups(labelSelector={"matchExpressions": [wrong]}, matchLabelKeys=["part"]) == []


def test_policy_without_keys_forms_no_groups() -> None:
    assert sub_groups(labelSelector={"matchLabels": {"role": "worker"}}) == []


def test_pods_must_have_all_label_keys() -> None:
    assert sub_groups(matchLabelKeys=["role", "spot"]) == ["w1"]
