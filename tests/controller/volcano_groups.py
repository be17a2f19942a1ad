"""Scenarios with PodGroups of external pods."""

from typing import Any

from tests.controller.external_pods import pod
from tests.controller.volcano_scenarios import (
    DEVICES,
    RACKS,
    TWO_RACKS,
    Group,
    Machine,
    Object,
    Scenario,
    claiming,
    device,
    wanting,
)

_ROLE = "volcano.sh/task-spec"
_SLICES: Object = {
    "name": "slices",
    "labelSelector": {"matchLabels": {"app": "train"}},
    "matchLabelKeys": ["slice"],
    "subGroupSize": 2,
    "minSubGroups": 1,
}
_TWO_WORKERS = {"minimum": 2, "minTaskMember": {"worker": 2}}
_NEAR = {"networkTopology": {"mode": "hard", "highestTierAllowed": 1}}


def members(of: str, *roles: str, first: int = 0, **more: Any) -> list[Object]:
    """Pods of these roles. `first`: the number of the first of them."""
    return [_pod(of, first + at, {_ROLE: role}, **more) for at, role in enumerate(roles)]


def slices(of: str, *names: str, **more: Any) -> list[Object]:
    """Pods of a group, each with the name of its slice."""
    return [_pod(of, at, {"app": "train", "slice": name}, **more) for at, name in enumerate(names)]


def _pod(of: str, number: int, labels: dict[str, str], **more: Any) -> Object:
    """Its number decides its place in the order only if the name has three parts."""
    return pod(f"{of}-pod-{number}", annotations={"scheduling.k8s.io/group-name": of}, labels=labels, **more)


SCENARIOS: dict[str, Scenario] = {
    "a group waits for its minimum": Scenario(
        [Machine("plain")],
        [
            [Group("one", members("one", "a", "a"), {"minimum": 3})],
            [Group("one", members("one", "a", first=2))],
            [Group("two", members("two", "a", "a"), {"minimum": 2})],
            [Group("three", members("three", "a"), {"minimum": 1})],
        ],
    ),
    "a group waits for the minimum of a role": Scenario(
        [Machine("plain")],
        [
            [Group("one", members("one", "master", "worker"), _TWO_WORKERS)],
            [Group("one", members("one", "worker", first=2))],
        ],
    ),
    "minimums of roles beyond the minimum of the group do not count": Scenario(
        [Machine("plain")],
        [
            [Group("one", members("one", "master", "worker"), {"minimum": 1, "minTaskMember": {"worker": 2}})],
            [Group("one", members("one", "worker", first=2))],
        ],
    ),
    "pods are placed in the order of the numbers in their names": Scenario(
        [Machine("plain")],
        [
            [Group("one", members("one", "master", "worker", "worker", cpu="2"), _TWO_WORKERS)],
            [Group("two", members("two", "worker", "worker", "master", cpu="2"), _TWO_WORKERS)],
        ],
    ),
    "a hard topology of a group": Scenario(
        [Machine("rack-a", "1"), Machine("rack-a", "1"), Machine("rack-b", "2"), Machine("rack-b", "2")],
        [
            [Group("one", members("one", "a", "a", cpu="2"), {"minimum": 2, **_NEAR})],
            [Group("two", members("two", "a", "a", cpu="1"), {"minimum": 2, **_NEAR})],
            [Group("three", members("three", "a", "a", cpu="1"), {"minimum": 2, **_NEAR})],
        ],
        RACKS,
        TWO_RACKS,
    ),
    "a hall for a group": Scenario(
        [Machine("any", "2")] * 4,
        [
            [Group("one", members("one", "a", "a", "a", cpu="2"), {"minimum": 3, **_NEAR})],
            [
                Group(
                    "two",
                    members("two", "a", "a", "a", cpu="2"),
                    {"minimum": 3, "networkTopology": {"mode": "hard", "highestTierAllowed": 2}},
                )
            ],
        ],
        RACKS,
        TWO_RACKS,
    ),
    "each slice of a group in one rack": Scenario(
        [Machine("rack-a", "2"), Machine("rack-a", "2"), Machine("rack-b", "2"), Machine("rack-b", "2")],
        [
            [
                Group(
                    "one",
                    slices("one", "0", "1", "0", "1", cpu="2"),
                    {"minimum": 4, "subGroupPolicy": [_SLICES | _NEAR | {"minSubGroups": 2}]},
                )
            ],
        ],
        RACKS,
        TWO_RACKS,
    ),
    "a slice that no rack holds": Scenario(
        [Machine("rack-a", "2"), Machine("rack-a", "1"), Machine("rack-b", "1"), Machine("rack-b", "2")],
        [[Group("one", slices("one", "0", "0", cpu="2"), {"minimum": 2, "subGroupPolicy": [_SLICES | _NEAR]})]],
        RACKS,
        TWO_RACKS,
    ),
    "one slice of two": Scenario(
        [Machine("plain", "3")],
        [[Group("one", slices("one", "0", "0", "1", "1"), {"minimum": 2, "subGroupPolicy": [_SLICES]})]],
    ),
    "two slices or none": Scenario(
        [Machine("plain", "3")],
        [
            [
                Group(
                    "one",
                    slices("one", "0", "0", "1", "1"),
                    {"minimum": 2, "subGroupPolicy": [_SLICES | {"minSubGroups": 2}]},
                )
            ],
            [Group("two", members("two", "a"), {"minimum": 1})],
        ],
    ),
    "claims of a group": Scenario(
        [Machine("cards", devices=[device("d-0"), device("d-1")]), Machine("plain")],
        [
            [Group("three", members("three", "a", "a", "a", **claiming("one")), {"minimum": 3})],
            [Group("two", members("two", "a", "a", **claiming("one")), {"minimum": 2})],
            [Group("next", members("next", "a", **claiming("one")), {"minimum": 1})],
        ],
        DEVICES,
        templates={"one": wanting()},
    ),
}
