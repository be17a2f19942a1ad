"""Limits by control groups, in a tree of plain files: the parent group, and the limits of a pod."""

import time
from pathlib import Path

import pytest
from tests.backends.local.test_processes import folder_of

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
    assert cgroups.create_parents("pods", str(root), {"": own}) == ({"memory cpu": str(root / want)} if want else {})


@pytest.mark.parametrize(
    ("cpu", "memory", "want"),
    [
        (0, 0, {"memory.oom.group": "1"}),
        (500, 0, {"memory.oom.group": "1", "cpu.max": "50000 100000"}),
        (1, 0, {"memory.oom.group": "1", "cpu.max": "1000 100000"}),
        (0, 2**30, {"memory.oom.group": "1", "memory.max": "1073741824", "memory.swap.max": "0"}),
    ],
)
def test_limits_are_the_requests(cpu, memory, want):
    assert cgroups.groups_of({"memory cpu": "/top"}, "pod", cpu, memory) == {"/top/pod": want}


@pytest.mark.parametrize(
    ("events", "want"), [("oom 1\noom_kill 1\n", True), ("oom 0\noom_kill 0\noom_group_kill 0\n", False), (None, False)]
)
def test_oom_kill_is_read_from_memory_events(tmp_path, events, want):
    if events:
        (tmp_path / "memory.events").write_text(events)
    assert cgroups.was_oom_killed(str(tmp_path)) is want


def test_pod_enters_its_group_before_it_runs(local, tmp_path, monkeypatch):
    root = tree(tmp_path / "cgroup", top="cpu memory")
    monkeypatch.setattr(cgroups.create_parents, "__defaults__", (str(root), {"": "/"}))
    backend = open_backend("local", {}, BackendContext("c1", local.home, now))
    order = local.order(resources=Resources.parse({"cpu": "250m", "memory": "1Gi"}))
    local.start(order, at=backend)
    assert local.ended(order.key).phase == PodPhase.SUCCEEDED
    (group,) = root.glob("hekla-c1-*/job~worker-0-0")
    written = {file.name: file.read_text() for file in group.iterdir()}
    assert written["memory.max"] == str(2**30)
    assert written["cpu.max"] == "25000 100000"
    assert written["cgroup.procs"] == "0"


def test_pod_runs_without_control_groups(local, monkeypatch):
    monkeypatch.setattr(cgroups, "create_parents", lambda name: {})
    order = local.order(resources=Resources.parse({"cpu": "250m", "memory": "1Gi"}))
    local.start(order, at=local.reopen())
    assert local.ended(order.key).phase == PodPhase.SUCCEEDED


def v1_tree(root: Path) -> Path:
    """A tree of version 1, without the files that a kernel would give a new group."""
    for controller in ("memory", "cpu"):
        (root / controller / "own" / "pods").mkdir(parents=True)
    (root / "memory" / "own" / "pods" / "memory.limit_in_bytes").touch()
    (root / "cpu" / "own" / "pods" / "cpu.cfs_quota_us").touch()
    return root


def test_version_1_has_a_group_for_each_controller(tmp_path):
    root, own = v1_tree(tmp_path), {"memory": "/own", "cpu": "/own", "": "/"}
    parents = cgroups.create_parents("pods", str(root), own)
    assert parents == {one: str(root / one / "own" / "pods") for one in ("memory", "cpu")}
    assert cgroups.groups_of(parents, "pod", 500, 2**30) == {
        f"{root}/memory/own/pods/pod": {
            "memory.limit_in_bytes": str(2**30),
            "memory.memsw.limit_in_bytes": str(2**30),
        },
        f"{root}/cpu/own/pods/pod": {"cpu.cfs_period_us": "100000", "cpu.cfs_quota_us": "50000"},
    }
    assert cgroups.limited(parents) == {"memory", "cpu"}
    (root / "cpu" / "own" / "pods" / "cpu.cfs_quota_us").unlink()
    assert set(cgroups.create_parents("pods", str(root), own)) == {"memory"}


ENFORCED = pytest.mark.skipif(not cgroups.create_parents("hekla-test"), reason="no control group can be written here")
EATER = "import time; held = bytearray(300 * 2**20); held[::4096] = b'x' * len(held[::4096]); time.sleep(5)"


@ENFORCED
def test_pod_with_more_memory_than_it_requests_is_killed(local):
    limits = Resources.parse({"cpu": "1", "memory": "100Mi"})
    key = local.started(local.order(command=("python", "-c", EATER), resources=limits))
    pod = local.ended(key)
    assert (pod.phase, pod.reason) == (PodPhase.FAILED, "OOMKilled"), pod
    enough = Resources.parse({"cpu": "1", "memory": "1Gi"})
    other = local.order(1, command=("python", "-c", EATER.replace("sleep(5)", "sleep(0)")), resources=enough)
    assert local.ended(local.started(other)).phase == PodPhase.SUCCEEDED


def cpu_statistics(local, key):
    """The kernel's figures of a pod's CPU limit: periods of 100 ms with work, and those in which it was held back."""
    groups = folder_of(local, key).order()["groups"]
    (statistics,) = [path for group in groups if (path := Path(group, "cpu.stat")).exists()]
    return {name: int(value) for name, value in map(str.split, statistics.read_text().splitlines())}


def waits_for_cpu(local, index, cpu):
    """How often the kernel held back a pod that computes all the time, in its first periods of CPU time."""
    order = local.order(index, script="while :; do :; done", resources=Resources.parse({"cpu": cpu}))
    key = local.started(order)
    local.until(key, PodPhase.RUNNING)
    give_up_at = time.monotonic() + 30
    while cpu_statistics(local, key)["nr_periods"] < 20:
        assert time.monotonic() < give_up_at
        time.sleep(0.05)
    return cpu_statistics(local, key)["nr_throttled"]


@ENFORCED
def test_pod_gets_no_more_cpu_than_it_requests(local):
    """Not measured by its CPU time: on a busy machine, each pod gets little."""
    assert waits_for_cpu(local, 0, "50m") > 0
    assert waits_for_cpu(local, 1, "3") == 0


@ENFORCED
@pytest.mark.parametrize("cpu", ["1m", "10m"])
def test_preparation_of_a_pod_is_not_held_back_by_its_cpu_limit(local, cpu):
    key = local.started(local.order(command=("sleep", "60"), resources=Resources.parse({"cpu": cpu})))
    local.until(key, PodPhase.RUNNING)
    assert cpu_statistics(local, key)["nr_throttled"] < 5
