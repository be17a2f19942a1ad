"""Limits by control groups, in a tree of plain files: the parent group, and the limits of a pod."""

from pathlib import Path

import pytest

from hekla.backends.kind import BackendContext
from hekla.backends.local import cgroups
from hekla.backends.registry import open_backend
from hekla.domain.phases import PodPhase
from hekla.domain.resources import Resources
from hekla.lib.clock import now


def tree(root: Path, **controllers: str) -> Path:
    """A tree of control groups: path (`__` for a slash) to the controllers for its children."""
    for name, delegated in controllers.items():
        folder = root / name.replace("__", "/").removeprefix("top").lstrip("/")
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "cgroup.subtree_control").write_text(delegated)
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
def test_nearest_group_that_delegates_cpu_and_memory_is_the_parent(tmp_path, controllers, own, want):
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
def test_limits_are_the_requests(cpu, memory, want):
    assert cgroups.limit_files(cpu, memory) == want


@pytest.mark.parametrize(
    ("events", "want"), [("oom 1\noom_kill 1\n", True), ("oom 0\noom_kill 0\noom_group_kill 0\n", False), (None, False)]
)
def test_oom_kill_is_read_from_memory_events(tmp_path, events, want):
    if events:
        (tmp_path / "memory.events").write_text(events)
    assert cgroups.was_oom_killed(str(tmp_path)) is want


def test_pod_enters_its_group_before_it_runs(local, tmp_path, monkeypatch):
    root = tree(tmp_path / "cgroup", top="cpu memory")
    monkeypatch.setattr(cgroups, "ROOT", str(root))
    monkeypatch.setattr(cgroups.create_parent, "__defaults__", (str(root), "/"))
    backend = open_backend("local", {}, BackendContext("c1", local.home, now))
    order = local.order(resources=Resources.parse({"cpu": "250m", "memory": "1Gi"}))
    local.start(order, at=backend)
    assert local.ended(order.key).phase == PodPhase.SUCCEEDED
    (group,) = root.glob("hekla-c1-*/job~worker-0-0")
    written = {file.name: file.read_text() for file in group.iterdir()}
    assert written["memory.max"] == str(2**30)
    assert written["cpu.max"] == "25000 100000"
    assert written["cgroup.procs"] == "0"
    assert written["cgroup.kill"] == "1"


def test_pod_runs_without_control_groups(local, monkeypatch):
    monkeypatch.setattr(cgroups, "create_parent", lambda name: None)
    order = local.order(resources=Resources.parse({"cpu": "250m", "memory": "1Gi"}))
    local.start(order, at=local.reopen())
    assert local.ended(order.key).phase == PodPhase.SUCCEEDED
