"""Taints, annotations and images in the configuration of simulated nodes."""

from datetime import datetime, timedelta
from typing import Any

import pytest

from hekla.backends.base import PodKey, PodOrder
from hekla.backends.kind import BackendContext
from hekla.backends.registry import open_backend
from hekla.domain.errors import Invalid
from hekla.domain.numa import pin
from hekla.domain.resources import Resources
from hekla.domain.taints import Taint
from hekla.lib.clock import now

NODE = {"name": "n", "allocatable": {"cpu": "1"}}


def opened(tmp_path, **more: Any) -> Any:
    return open_backend("simulated", {"nodes": [NODE | more]}, BackendContext("c", tmp_path, now))


def test_nodes_have_what_is_configured(tmp_path) -> None:
    taint = {"key": "example.com/gpu", "value": "a100", "effect": "NoExecute"}
    soft = {"key": "slow", "effect": "PreferNoSchedule"}
    more = {"taints": [taint, soft], "annotations": {"a": "b"}, "images": {"tool:1": "2Ki", "other:1": 7}}
    (node,) = opened(tmp_path, **more).nodes()
    assert node.taints == (Taint("example.com/gpu", "a100", "NoExecute"), Taint("slow", effect="PreferNoSchedule"))
    assert (node.annotations, node.images) == ({"a": "b"}, {"tool:1": 2048, "other:1": 7})


INVALID = [
    ({"key": "gpu", "effect": "Sometimes"}, "effect", "is not one of NoSchedule"),
    ({"key": "gpu"}, "effect", "Required"),
    ({"key": "", "effect": "NoSchedule"}, "key", ""),
    ({"key": "not a key", "effect": "NoSchedule"}, "key", ""),
    ({"key": "gpu", "value": "a:b", "effect": "NoSchedule"}, "value", ""),
    ({"key": "gpu", "value": "a" * 64, "effect": "NoSchedule"}, "value", ""),
]


@pytest.mark.parametrize(("taint", "field", "message"), INVALID)
def test_invalid_taint_is_refused(tmp_path, taint: dict[str, str], field: str, message: str) -> None:
    with pytest.raises(Invalid) as refusal:
        opened(tmp_path, taints=[taint])
    (problem,) = refusal.value.problems
    assert problem.path == f"config.nodes.0.taints.0.{field}"
    assert message in problem.message


def test_invalid_size_of_an_image_is_refused(tmp_path) -> None:
    with pytest.raises(Invalid) as refusal:
        opened(tmp_path, images={"tool:1": "huge"})
    assert [problem.path for problem in refusal.value.problems] == ["config.nodes.0.images"]


@pytest.mark.parametrize(
    ("free", "cpus", "parts"),
    [
        ((4, 8), 6, (0, 6)),
        ((8, 8), 8, (8, 0)),
        ((4, 4, 4), 8, (4, 4, 0)),
        ((2, 4), 6, (2, 4)),
        ((2, 2), 6, (0, 0)),
        ((), 6, ()),
    ],
)
def test_pods_are_pinned_to_the_fewest_cells(free: tuple[int, ...], cpus: int, parts: tuple[int, ...]) -> None:
    assert pin(free, cpus) == parts


def test_pinned_cpus_are_in_use_until_the_pod_ends(tmp_path) -> None:
    backend = opened(tmp_path, numa={"topology_policy": "restricted", "cells": [4, 8]})
    key = PodKey("job", "worker", 0, 1)
    start(backend, key, cpus="6")
    start(backend, PodKey("job", "worker", 1, 1), cpus="1500m")
    assert numa(backend) == ("restricted", "static", ((4, 4), (8, 2)))
    again = opened(tmp_path, numa={"topology_policy": "restricted", "cells": [4, 8]})
    assert numa(again) == numa(backend), "from the journal"
    backend.remove("job")
    assert numa(backend) == ("restricted", "static", ((4, 4), (8, 8)))


def test_usage_is_that_of_the_pods_that_run_now(tmp_path) -> None:
    clock = Clock()
    times = {"speed": 1, "prepare_seconds": {"min": 5, "max": 5}, "run_seconds": {"min": 100, "max": 100}}
    config = {"nodes": [{"name": "n", "allocatable": {"cpu": "10"}, "usage": {"cpu": "1"}}], "stop_seconds": 0, **times}
    context = BackendContext("c", tmp_path, clock)
    backend: Any = open_backend("simulated", config, context)
    other: Any = open_backend("simulated", config, context)
    keys = [PodKey("job", "worker", 0, 1), PodKey("job", "worker", 1, 1), PodKey("removed", "worker", 0, 1)]

    def used() -> Any:
        (found,), (same,) = backend.measure_nodes(), other.measure_nodes()
        assert found == same
        return found.cpu

    for key in keys:
        start(backend, key, cpus="2")
    assert used() == 10, "none runs yet"
    clock.pass_seconds(6)
    assert [used(), used()] == [70, 70]
    list(backend.stop_many([(keys[0], "test")], heartbeat=lambda: None))
    clock.pass_seconds(1)
    assert used() == 50
    backend.remove("removed")
    backend.remove_logs("removed")
    assert used() == 30
    clock.pass_seconds(200)
    backend.observe(None)
    assert used() == 10


class Clock:
    """Stands still between calls of `pass_seconds`."""

    def __init__(self) -> None:
        self._at = now()

    def __call__(self) -> datetime:
        return self._at

    def pass_seconds(self, seconds: float) -> None:
        self._at += timedelta(seconds=seconds)


def start(backend: Any, key: PodKey, *, cpus: str) -> None:
    order = PodOrder(key, "n", ("train",), "", resources=Resources.parse({"cpu": cpus}))
    assert [error for _order, error in backend.start_many([order], heartbeat=lambda: None)] == [None]


def numa(backend: Any) -> tuple[Any, ...]:
    (node,) = backend.nodes()
    return node.numa.topology_policy, node.numa.cpu_policy, node.numa.cells
