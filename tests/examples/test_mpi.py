"""The MPI example on the backend `local`: ranks run in the workers' own pods, and what happens to one reaches all."""

import math
import random

import pytest
from tests.examples.training import EXAMPLES, python_with, spec_of
from tests.support.pods import start_pod, stop_pod

from hekla.backends.base import PodKey, PodOrder
from hekla.backends.kind import BackendContext
from hekla.backends.registry import open_backend
from hekla.domain.addresses import Replica
from hekla.domain.frameworks import settings_for
from hekla.domain.phases import FINAL_POD_PHASES, PodPhase
from hekla.lib.clock import now

WAITING = """
import time
from mpi4py import MPI
MPI.COMM_WORLD.barrier()
if MPI.COMM_WORLD.rank == 0:
    print("all", MPI.COMM_WORLD.size, "are up", flush=True)
time.sleep(1000)
"""
PLACES = [("master", 0), ("worker", 0), ("worker", 1)]


class Ranks:
    """The pods of the example, started as the controller starts them."""

    def __init__(self, home):
        self.backend = open_backend("local", {"allocatable": {"cpu": "4"}}, BackendContext("c1", home, now))
        first = random.randrange(1000, 100_000)
        self.addresses = {
            place: self.backend.runner.address(Replica("job", "mpi", *place, first + number))
            for number, place in enumerate(PLACES)
        }

    def start(self, program):
        spec, python = spec_of("mpi"), python_with(EXAMPLES / "mpi" / "environment.txt")
        for place in PLACES:
            settings = settings_for(spec, *place, self.addresses)
            start_pod(
                self.backend,
                PodOrder(
                    key=key(*place),
                    node=self.backend.nodes()[0].name,
                    command=spec.task(place[0]).command,
                    address=self.addresses[place],
                    env={**settings.env, "PATH": f"{python.parent}:/usr/bin:/bin"},
                    files={**settings.files, "integrate.py": program},
                ),
            )

    def phase(self, place):
        return {pod.key: pod.phase for pod in self.backend.observe(None).pods}.get(key(*place))

    def log(self, place):
        return self.backend.logs(key(*place), offset=0, limit=1_000_000).data.decode()

    def stop(self, *places):
        for place in places:
            stop_pod(self.backend, key(*place), reason="Test")


def key(task, index):
    return PodKey("mpi", task, index, 0)


@pytest.fixture
def ranks(tmp_path, until):
    ranks = Ranks(tmp_path)
    yield ranks
    ranks.stop(*PLACES)
    until(lambda: all(ranks.phase(place) in (None, *FINAL_POD_PHASES) for place in PLACES))


def test_the_manifest_starts_all_three_or_none_and_ends_with_the_master():
    spec = spec_of("mpi")
    assert {task.name: task.replicas for task in spec.tasks} == {"master": 1, "worker": 2}
    assert spec.min_available == 3
    assert [str(policy.action) for policy in spec.task("master").policies] == ["CompleteJob"]


def test_two_workers_agree_on_pi(ranks, until):
    ranks.start((EXAMPLES / "mpi" / "integrate.py").read_text())
    until(lambda: ranks.phase(PLACES[0]) in FINAL_POD_PHASES)
    said = ranks.log(PLACES[0])
    assert ranks.phase(PLACES[0]) == PodPhase.SUCCEEDED, said
    for rank, place in enumerate(PLACES[1:]):
        assert f"rank {rank} of 2 is at {ranks.addresses[place]}\n" in said
        assert ranks.phase(place) == PodPhase.RUNNING
    assert f"strips: {math.pi:.9f}" in said


def test_when_a_worker_is_stopped_its_rank_ends_and_so_does_mpirun(ranks, until):
    ranks.start(WAITING)
    until(lambda: "all 2 are up" in ranks.log(PLACES[0]))
    ranks.stop(PLACES[2])
    until(lambda: ranks.phase(PLACES[0]) == PodPhase.FAILED)
