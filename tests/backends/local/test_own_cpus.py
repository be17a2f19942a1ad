"""CPUs that pods have for themselves: which ones, on a machine of files with two cells, and real pods on this one."""

import os
import signal
from pathlib import Path

import pytest
from tests.backends.local.test_cgroups import tree
from tests.backends.local.test_processes import eventually, folder_of

from hekla.backends.base import StartDelayed, StartRefused
from hekla.backends.config import parse_config
from hekla.backends.local import cpusets
from hekla.backends.local.config import LocalConfig
from hekla.backends.local.cpu_topology import read_topology
from hekla.backends.local.exclusive_cpus import ExclusiveCpus
from hekla.domain.cpu_sets import parse_cpus
from hekla.domain.errors import Invalid
from hekla.domain.numa import TopologyPolicy
from hekla.domain.phases import PodPhase
from hekla.domain.resources import Resources


def machine_files(root: Path, cells: list[str], cores: list[str]) -> Path:
    """Files of a machine with these CPUs in its cells, and these threads in its cores."""
    for number, cpus in enumerate(cells):
        (root / "node" / f"node{number}").mkdir(parents=True)
        (root / "node" / f"node{number}" / "cpulist").write_text(f"{cpus}\n")
    for core in cores:
        for cpu in parse_cpus(core):
            (root / "cpu" / f"cpu{cpu}" / "topology").mkdir(parents=True)
            (root / "cpu" / f"cpu{cpu}" / "topology" / "thread_siblings_list").write_text(f"{core}\n")
    return root


@pytest.fixture
def two_cells(tmp_path) -> Path:
    """Two cells with two cores each; a core has two threads."""
    return machine_files(tmp_path / "system", ["0-3", "4-7"], ["0-1", "2-3", "4-5", "6-7"])


@pytest.mark.parametrize(
    ("reserved", "own", "cells", "want"),
    [
        pytest.param("", range(8), [{1, 2, 3}, {4, 5, 6, 7}], {0}, id="the lowest is reserved"),
        pytest.param("0,4", range(8), [{1, 2, 3}, {5, 6, 7}], {0, 4}, id="configured"),
        pytest.param("0", range(2, 8), [{3}, {4, 5, 6, 7}], {2}, id="configured ones are not ours"),
        pytest.param("0-3", range(8), [{4, 5, 6, 7}], {0, 1, 2, 3}, id="a whole cell is reserved"),
        pytest.param("", [5], [], {5}, id="one CPU"),
    ],
)
def test_cells_have_the_cpus_that_are_not_reserved(two_cells, reserved, own, cells, want):
    topology = read_topology(parse_cpus(reserved), two_cells, set(own))
    assert (list(topology.cells), topology.reserved) == (cells, want)


def test_machine_without_cells_is_one(tmp_path):
    topology = read_topology([], tmp_path, {0, 1, 2})
    assert (topology.cells, topology.reserved) == ((frozenset({1, 2}),), {0})


def test_ninth_cell_is_shared(tmp_path):
    system = machine_files(tmp_path, [str(cell) for cell in range(12)], [])
    topology = read_topology([], system, set(range(12)))
    assert [set(cell) for cell in topology.cells] == [{cell} for cell in range(1, 9)]
    assert topology.reserved == {0, 9, 10, 11}


class Machine:
    """The CPUs of pods on the machine with two cells. `reserved` is CPU 0, so cell 0 has one whole core."""

    def __init__(self, folder: Path, system: Path, policy: str) -> None:
        self._arguments = folder, read_topology([], system, set(range(8))), TopologyPolicy(policy)
        self.pods: set[str] = set()
        self.cpus = self.open()

    def open(self) -> ExclusiveCpus:
        return ExclusiveCpus(*self._arguments, lambda pod: pod not in self.pods)

    def start(self, pod: str, cpus: float) -> str:
        with self.cpus.claim(pod, cpus * 1000) as own:
            self.pods.add(pod)
        return own

    def end(self, *pods: str) -> None:
        self.pods.difference_update(pods)
        self.cpus.release(self.pods.__contains__)

    @property
    def shared(self) -> str:
        return self.cpus.shared.read_text()

    @property
    def cells(self) -> list[tuple[int, int]]:
        return list(self.cpus.topology().cells)


@pytest.fixture
def make_machine(tmp_path, two_cells):
    return lambda policy="none": Machine(tmp_path / "cpus", two_cells, policy)


def test_pods_get_whole_cores_of_the_fewest_cells(make_machine):
    machine = make_machine()
    assert machine.start("a", 2) == "2-3"
    assert machine.start("b", 2) == "4-5"
    assert machine.start("c", 2) == "6-7"
    assert (machine.shared, machine.cells) == ("0-1", [(3, 1), (4, 0)])
    machine.end("b")
    assert (machine.shared, machine.cells) == ("0-1,4-5", [(3, 1), (4, 2)])
    assert machine.start("d", 3) == "1,4-5"
    assert machine.shared == "0"
    machine.end("a", "c", "d")
    assert machine.shared == "0-7"
    assert machine.start("e", 1) == "1"  # half of a core is left beside the reserved CPU
    assert machine.start("f", 4) == "4-7"


@pytest.mark.parametrize("cpus", [0, 0.5, 1.5])
def test_parts_of_cpus_are_shared(make_machine, cpus):
    machine = make_machine()
    assert machine.start("a", cpus) == ""
    assert (machine.shared, machine.cells) == ("0-7", [(3, 3), (4, 4)])


@pytest.mark.parametrize(
    ("policy", "first", "second", "want"),
    [
        ("none", 3, 4, "1-3,7"),
        ("best-effort", 3, 4, "1-3,7"),
        ("restricted", 3, 4, StartDelayed),
        ("restricted", 2, 5, "1-3,6-7"),
        ("single-numa-node", 3, 4, StartDelayed),
        ("single-numa-node", 3, 5, StartRefused),
        ("none", 3, 8, StartRefused),
        ("none", 3, 6, StartDelayed),
    ],
)
def test_policy_says_how_many_cells(make_machine, policy, first, second, want):
    machine = make_machine(policy)
    machine.start("a", first), machine.start("b", first), machine.end("a")
    if isinstance(want, str):
        assert parse_cpus(machine.start("c", second)) == parse_cpus(want)
    else:
        with pytest.raises(want):
            machine.start("c", second)
        assert "c" not in machine.pods


def test_pod_that_was_not_created_frees_its_cpus(make_machine):
    machine = make_machine()
    with pytest.raises(OSError, match="full"), machine.cpus.claim("a", 2000):
        raise OSError("full")
    assert machine.start("b", 2) == "2-3"


def test_cpus_outlive_the_console(make_machine):
    machine = make_machine()
    machine.start("a", 2)
    machine.cpus = machine.open()
    assert machine.start("a", 2) == "2-3"
    assert machine.start("b", 2) == "4-5"
    (machine.cpus.shared.parent / "pods" / "a").write_text("damaged")
    machine.end("a", "b")
    assert machine.shared == "0-7"


@pytest.mark.parametrize(
    "config",
    [{"topology_policy": "restricted"}, {"reserved_cpus": "0"}, {"cpu_policy": "static", "reserved_cpus": "first"}],
)
def test_settings_without_effect_are_rejected(config):
    with pytest.raises(Invalid):
        parse_config(LocalConfig, config)


# Control groups


def test_version_2_delegates_cpusets(tmp_path):
    root = tree(tmp_path, top__pods="memory cpu")
    parent = cpusets.create_parent("pods", {"memory cpu": str(root / "pods")})
    assert parent == cpusets.Parent(str(root / "pods"), {})
    assert (root / "pods" / "cgroup.subtree_control").read_text() == "+cpuset"
    assert cpusets.create_parent("pods", {"memory cpu": str(root / "missing")}) is None


def test_version_1_repeats_cpus_and_memory_of_the_parent(tmp_path):
    own = tmp_path / "cpuset" / "own"
    own.mkdir(parents=True)
    (own / "cpuset.cpus").write_text("0-3\n")
    (own / "cpuset.mems").write_text("0-1\n")
    parent = cpusets.create_parent("pods", {}, str(tmp_path), {"cpuset": "/own"})
    assert parent == cpusets.Parent(str(own / "pods"), {"cpuset.mems": "0-1"})
    assert [(own / "pods" / name).read_text() for name in ("cpuset.cpus", "cpuset.mems")] == ["0-3", "0-1"]
    assert cpusets.create_parent("pods", {}, str(tmp_path), {}) is None


# Real pods

STATIC = {"cpu_policy": "static"}
ALLOWED = "grep Cpus_allowed_list: /proc/self/status"
WHOLE = Resources.parse({"cpu": "1"})
OWN = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
has_two_cpus = pytest.mark.skipif(len(OWN) < 2, reason="this machine has one CPU")


def allowed_of(cluster, key) -> set[int]:
    """The CPUs of the pod's first process."""
    pid = folder_of(cluster, key).status()["pid"]
    (line,) = [line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if "Cpus_allowed_list" in line]
    return set(parse_cpus(line.split()[1]))


@has_two_cpus
@pytest.mark.parametrize("has_groups", [True, False])
def test_pod_has_its_cpus_alone_until_it_ends(make_cluster, monkeypatch, has_groups):
    if not has_groups:
        monkeypatch.setattr(cpusets, "create_parent", lambda *_: None)
    cluster = make_cluster("local", STATIC)
    (node,) = cluster.backend.nodes()
    assert sum(cpus for cpus, _free in node.numa.cells) == len(OWN) - 1
    assert "Pods that request whole CPUs have them for themselves." in node.message
    shared = cluster.started(cluster.long(0))
    cluster.until(shared, PodPhase.RUNNING)
    assert allowed_of(cluster, shared) == set(OWN)

    script = f"{ALLOWED}; exec sleep 1000"
    pinned = cluster.started(cluster.order(1, script=script, resources=WHOLE))
    assert cluster.until(pinned, PodPhase.RUNNING).cpus == str(OWN[1])
    assert eventually(lambda: cluster.log(pinned).split() == ["Cpus_allowed_list:", str(OWN[1])])
    assert eventually(lambda: allowed_of(cluster, shared) == {*OWN} - {OWN[1]})
    later = cluster.started(cluster.order(2, script=ALLOWED))
    assert cluster.ended(later).cpus == ""
    assert parse_cpus(cluster.log(later).split()[1]) == {*OWN} - {OWN[1]}

    cluster.backend = cluster.reopen()
    assert sum(free for _cpus, free in cluster.backend.nodes()[0].numa.cells) == len(OWN) - 2
    cluster.stop(pinned, reason="enough")
    assert cluster.ended(pinned).cpus == str(OWN[1])
    assert eventually(lambda: allowed_of(cluster, shared) == set(OWN))
    assert sum(free for _cpus, free in cluster.backend.nodes()[0].numa.cells) == len(OWN) - 1


@has_two_cpus
def test_pod_cannot_leave_the_cpus_of_its_group(make_cluster):
    cluster = make_cluster("local", STATIC)
    if "by affinity" in cluster.backend.nodes()[0].message:
        pytest.skip("no control group of CPUs can be written here")
    code = "import os; os.sched_setaffinity(0, range(os.cpu_count())); print(sorted(os.sched_getaffinity(0)))"
    pinned = cluster.started(cluster.order(command=("python", "-c", code), resources=WHOLE))
    cluster.ended(pinned)
    assert cluster.log(pinned).strip() == str([OWN[1]])


@has_two_cpus
def test_pod_waits_for_its_cpus_until_those_of_a_lost_pod_are_free(make_cluster):
    cluster = make_cluster("local", {**STATIC, "reserved_cpus": ",".join(map(str, OWN[:-1]))})
    first = cluster.started(cluster.long(0, resources=WHOLE))
    cluster.until(first, PodPhase.RUNNING)
    second = cluster.order(1, script=ALLOWED, resources=WHOLE)
    with pytest.raises(StartDelayed):
        cluster.start(second)
    os.kill(folder_of(cluster, first).holder(), signal.SIGKILL)
    cluster.until(first, PodPhase.LOST)
    cluster.start(second)
    cluster.ended(second.key)
    assert cluster.log(second.key).split()[1] == str(OWN[-1])


def test_without_the_policy_nothing_changes(local):
    (node,) = local.backend.nodes()
    assert (node.numa, "CPUs" in node.message) == (None, False)
    key = local.started(local.order(resources=WHOLE))
    assert local.ended(key).cpus == ""
    assert "cpus" not in folder_of(local, key).order()
    assert not list(local.home.glob("local/*/cpus"))


@pytest.mark.thorough
@has_two_cpus
def test_container_has_its_cpus_alone_until_it_ends(make_cluster):
    cluster = make_cluster("containers", STATIC)
    if cluster.backend.nodes()[0].numa is None:
        pytest.skip("this container engine cannot set CPUs")
    shared = cluster.started(cluster.long(0))
    cluster.until(shared, PodPhase.RUNNING)
    assert allowed_of(cluster, shared) == set(OWN)
    pinned = cluster.started(cluster.order(1, script=f"{ALLOWED}; exec sleep 1000", resources=WHOLE))
    assert cluster.until(pinned, PodPhase.RUNNING).cpus == str(OWN[1])
    assert eventually(lambda: cluster.log(pinned).split() == ["Cpus_allowed_list:", str(OWN[1])])
    assert eventually(lambda: allowed_of(cluster, shared) == {*OWN} - {OWN[1]})
    later = cluster.started(cluster.order(2, script=ALLOWED))
    cluster.ended(later)
    assert parse_cpus(cluster.log(later).split()[1]) == {*OWN} - {OWN[1]}
    cluster.stop(pinned, reason="enough")
    cluster.ended(pinned)
    assert eventually(lambda: allowed_of(cluster, shared) == set(OWN))
