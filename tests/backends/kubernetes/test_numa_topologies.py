"""Numatopology objects: the NUMA cells of nodes and their free CPUs."""

from typing import Any

import pytest

from hekla.backends.kubernetes.api import ApiError, Json
from hekla.backends.kubernetes.numa_topologies import NumaTopologies, parse_topology
from hekla.domain.numa import NumaTopology

CPUS = {str(cpu): {"numa": cpu // 4, "socket": cpu // 4, "core": cpu // 2} for cpu in range(8)}
POLICIES = {"CPUManagerPolicy": "static", "TopologyManagerPolicy": "single-numa-node"}


def spec(free: str = "0-7", **more: Any) -> Json:
    return {
        "cpuDetail": CPUS,
        "policies": POLICIES,
        "numares": {"cpu": {"allocatable": free, "capacity": 8}},
        **more,
    }


CELLS = [
    (spec(), ((4, 4), (4, 4))),
    (spec("2,4-5,7"), ((4, 1), (4, 3))),
    (spec(""), ((4, 0), (4, 0))),
    (spec("0-100"), ((4, 4), (4, 4))),
    (spec("1-7", resReserved={"cpu": "500m"}), ((3, 3), (4, 4))),
    (spec(resReserved={"cpu": "2"}), ((2, 2), (4, 4))),
    (spec(numares=None), ((4, 0), (4, 0))),
    (spec(cpuDetail=None), ()),
]


@pytest.mark.parametrize(("body", "cells"), CELLS)
def test_cells_and_their_free_cpus(body: Json, cells: object) -> None:
    assert parse_topology(body) == NumaTopology("single-numa-node", "static", cells)  # type: ignore[arg-type]


@pytest.mark.parametrize("policies", [None, {}, {"TopologyManagerPolicy": "x" * 10_000, "CPUManagerPolicy": 5}])
def test_unknown_policies_are_none(policies: object) -> None:
    found = parse_topology(spec(policies=policies))
    assert (found.topology_policy, found.cpu_policy) == ("none", "none")


HOSTILE = [
    None,
    [],
    spec("0-999999999"),
    spec("-5"),
    spec("3-1"),
    spec("a"),
    spec(cpuDetail={"a": {}}),
    spec(cpuDetail={str(cpu): {} for cpu in range(5000)}),
    spec(resReserved={"cpu": "many"}),
    spec(numares={"cpu": 5}),
]


def named(name: str, body: object, version: int = 1) -> Json:
    return {"metadata": {"name": name, "resourceVersion": str(version)}, "spec": body}


class Server:
    """An API server with these objects, whose watches fail."""

    def __init__(self, *objects: Json) -> None:
        self.objects, self.lists = list(objects), 0
        self.status: int | None = None

    def pages(self, _path: str, **_params: str) -> list[Json]:
        self.lists += 1
        if self.status:
            raise ApiError(self.status, "", "")
        return [{"metadata": {"resourceVersion": "5"}, "items": self.objects}]

    def watch(self, *_args: Any, **_params: Any) -> Any:
        raise ApiError(500, "", "")

    get = watch

    def end_watches(self) -> None:
        pass


@pytest.mark.parametrize("body", HOSTILE)
def test_object_that_is_not_valid_is_left_out(body: object) -> None:
    store = NumaTopologies(Server(named("bad", body), named("good", spec())))  # type: ignore[arg-type]
    assert list(store.of_nodes()) == ["good"]
    store.close()


def test_watch_updates_single_nodes() -> None:
    store = NumaTopologies(Server(named("a", spec()), named("b", spec())))  # type: ignore[arg-type]
    first = store.of_nodes()
    store.apply("MODIFIED", store.read(named("a", spec("0"))))
    store.apply("DELETED", store.read(named("b", spec())))
    assert {name: one.cells for name, one in store.of_nodes().items()} == {"a": ((4, 1), (4, 0))}
    assert first["b"].cells == ((4, 4), (4, 4))
    store.close()


def test_absent_objects_are_listed_once_a_minute() -> None:
    server = Server()
    server.status = 404
    store = NumaTopologies(server)  # type: ignore[arg-type]
    assert [dict(store.of_nodes()) for _ in range(3)] == [{}, {}, {}]
    assert server.lists == 1
