"""The shape of a queue's settings for plugins of the scheduler."""

from typing import Any

import pytest

from hekla.domain.queue_settings import AFFINITY, branch_weights, is_above, problems

USUAL: dict[str, Any] = {
    **{field: [] for field in AFFINITY}, "node_group_limits": {}, "card_quota": {}, "hierarchy": "",
    "hierarchy_weights": "",
}  # fmt: skip


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"required_node_groups": ["a", "B_1.x"], "preferred_node_groups": ["a"], "avoided_node_groups": ["B_1.x"]},
        {"node_group_limits": {"a": {"cpu": "4"}}},
        {"card_quota": {"NVIDIA-A100": 8, "NVIDIA-A100/mps-80g*1/8": 0, "huawei.com/Ascend910": 4}},
        {"hierarchy": "root/science/dev"},
        {"hierarchy": "root/science/dev", "hierarchy_weights": "1/2.5/4"},
    ],
)
def test_valid_settings(settings: dict[str, Any]) -> None:
    assert list(problems(USUAL | settings)) == []


@pytest.mark.parametrize(
    ("settings", "path", "message"),
    [
        ({"required_node_groups": ["a b"]}, "required_node_groups", "not the value of a node label"),
        ({"required_node_groups": ["a" * 64]}, "required_node_groups", "not the value of a node label"),
        ({"avoided_node_groups": [f"g{n}" for n in range(65)]}, "avoided_node_groups", "At most 64"),
        ({"preferred_node_groups": ["a"], "excluded_node_groups": ["a"]}, "excluded_node_groups", "another list"),
        ({"node_group_limits": {"a": {"cpu": "lots"}}}, "node_group_limits", "“lots” is not an amount"),
        ({"node_group_limits": {"-": {"cpu": "1"}}}, "node_group_limits", "not the value of a node label"),
        ({"node_group_limits": {"a": {f"r{n}": 1 for n in range(33)}}}, "node_group_limits", "at most 32"),
        ({"card_quota": {"A 100": 1}}, "card_quota", "not the model of a card"),
        ({"card_quota": {"A" * 129: 1}}, "card_quota", "not the model of a card"),
        ({"card_quota": {"A100": True}}, "card_quota", "use a whole number"),
        ({"card_quota": {"A100": -1}}, "card_quota", "use a whole number"),
        ({"card_quota": {f"m{n}": 1 for n in range(65)}}, "card_quota", "At most 64"),
        ({"hierarchy": "science/dev"}, "hierarchy", "Start with “root/”"),
        ({"hierarchy": "root"}, "hierarchy", "Start with “root/”"),
        ({"hierarchy": "root/" + "/".join("a" * 16)}, "hierarchy", "at most 16 names"),
        ({"hierarchy": "root//dev"}, "hierarchy", "“” is not a name"),
        ({"hierarchy_weights": "1/2"}, "hierarchy_weights", "Weights need a path"),
        ({"hierarchy": "root/a", "hierarchy_weights": "2"}, "hierarchy_weights", "each of the 2 names"),
        ({"hierarchy": "root/a", "hierarchy_weights": "1/0.5"}, "hierarchy_weights", "“0.5” is not a weight"),
        ({"hierarchy": "root/a", "hierarchy_weights": "1/x"}, "hierarchy_weights", "“x” is not a weight"),
    ],
)
def test_invalid_settings(settings: dict[str, Any], path: str, message: str) -> None:
    (problem,) = problems(USUAL | settings)
    assert problem.path == path
    assert message in problem.message


def test_paths_of_the_hierarchy() -> None:
    assert is_above("root/a", "root/a/b")
    assert is_above("root/a", "root/a")
    assert not is_above("root/a", "root/ab")
    assert branch_weights("root/a/b", "1/2/3") == {"root/a": 2.0, "root/a/b": 3.0}
    assert branch_weights("root/a", "") == {"root/a": 1.0}
    assert branch_weights("", "") == {}
