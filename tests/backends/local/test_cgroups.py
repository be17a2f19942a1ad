"""Limits by control groups: where they are found, and what a pod is given. The tree here is made of plain files."""

from pathlib import Path

import pytest

from hekla.backends.kind import BackendContext
from hekla.backends.local import cgroups
from hekla.backends.registry import open_backend
from hekla.domain.phases import PodPhase
from hekla.domain.resources import Resources
from hekla.lib.clock import now


def tree(root: Path, **controllers: str) -> Path:
    """A tree of control groups: path (`__` for a slash) to what it hands down."""
    for name, handed_down in controllers.items():
        folder = root / name.replace("__", "/").removeprefix("top").lstrip("/")
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "cgroup.subtree_control").write_text(handed_down)
    return root


@pytest.mark.parametrize(
    ("controllers", "own", "want"),
    [
        pytest.param({"top": "cpu io memory pids"}, "/", "pods", id="at the top"),
        pytest.param({"top": "cpu memory", "top__a": "cpu memory", "top__a__b": ""}, "/a/b", "a/pods", id="beside us"),
        pytest.param({"top": "cpu memory", "top__a": ""}, "/a", "pods", id="above us"),
        pytest.param({"top": "hugetlb"}, "/", None, id="without memory"),
        pytest.param({"top": "memory"}, "/", None, id="without cpu"),
        pytest.param({}, "/", None, id="no such tree"),
    ],
)
def test_the_nearest_group_that_hands_limits_down_is_taken(tmp_path, controllers, own, want):
    root = tree(tmp_path / "cgroup", **controllers)
    assert cgroups.create_parent("pods", str(root), own) == (want and str(root / want))


@pytest.mark.parametrize(
    ("cpu", "memory", "want"),
    [
        (0, 0, {"memory.oom.group": "1"}),
        (500, 0, {"memory.oom.group": "1", "cpu.max": "50000 100000"}),
        (0, 2**30, {"memory.oom.group": "1", "memory.max": "1073741824", "memory.swap.max": "0"}),
    ],
)
def test_what_was_asked_for_is_the_limit(cpu, memory, want):
    assert cgroups.limit_files(cpu, memory) == want


@pytest.mark.parametrize(
    ("events", "want"), [("oom 1\noom_kill 1\n", True), ("oom 0\noom_kill 0\noom_group_kill 0\n", False), (None, False)]
)
def test_the_kernel_says_who_ran_out_of_memory(tmp_path, events, want):
    if events:
        (tmp_path / "memory.events").write_text(events)
    assert cgroups.was_oom_killed(str(tmp_path)) is want


def test_a_pod_enters_its_group_before_it_runs(local, tmp_path, monkeypatch):
    root = tree(tmp_path / "cgroup", top="cpu memory")
    monkeypatch.setattr(cgroups, "ROOT", str(root))
    monkeypatch.setattr(cgroups.create_parent, "__defaults__", (str(root), "/"))
    backend = open_backend("local", {}, BackendContext("c1", local.home, now))
    order = local.order(resources=Resources.parse({"cpu": "250m", "memory": "1Gi"}))
    local.start(order, at=backend)
    assert local.ended(order.key).phase == PodPhase.SUCCEEDED
    (group,) = root.glob("hekla-c1-*/job~worker-0-0")
    told = {file.name: file.read_text() for file in group.iterdir()}
    assert told["memory.max"] == str(2**30)
    assert told["cpu.max"] == "25000 100000"
    assert told["cgroup.procs"] == "0"
    assert told["cgroup.kill"] == "1"


def test_without_control_groups_a_pod_runs_all_the_same(local, monkeypatch):
    monkeypatch.setattr(cgroups, "create_parent", lambda name: None)
    order = local.order(resources=Resources.parse({"cpu": "250m", "memory": "1Gi"}))
    local.start(order, at=local.reopened())
    assert local.ended(order.key).phase == PodPhase.SUCCEEDED
