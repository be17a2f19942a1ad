"""The MPI example on the `local` backend: ranks run in the workers' pods, and the end of one ends all."""

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
REPLICAS = [("master", 0), ("worker", 0), ("worker", 1)]


class Ranks:
    """The pods of the example, started like the controller does."""

    def __init__(self, home):
        self._python = python_with(EXAMPLES / "mpi" / "environment.txt")
        config = {"allocatable": {"cpu": "4"}, "shared_folders": [str(self._python.parents[1])]}
        self.backend = open_backend("local", config, BackendContext("c1", home, now))
        first = random.randrange(1000, 100_000)
        self.addresses = {
            replica: self.backend.runner.address(Replica("job", "mpi", *replica, first + number))
            for number, replica in enumerate(REPLICAS)
        }

    def start(self, program):
        spec = spec_of("mpi")
        for replica in REPLICAS:
            settings = settings_for(spec, *replica, self.addresses)
            start_pod(
                self.backend,
                PodOrder(
                    key=key(*replica),
                    node=self.backend.nodes()[0].name,
                    command=spec.task(replica[0]).command,
                    address=self.addresses[replica],
                    env={**settings.env, "PATH": f"{self._python.parent}:/usr/bin:/bin"},
                    files={**settings.files, "integrate.py": program},
                ),
            )

    def phase(self, replica):
        return {pod.key: pod.phase for pod in self.backend.observe(None).pods}.get(key(*replica))

    def log(self, replica):
        return self.backend.logs(key(*replica), offset=0, limit=1_000_000).data.decode()

    def stop(self, *replicas):
        for replica in replicas:
            stop_pod(self.backend, key(*replica), reason="Test")


def key(task, index):
    return PodKey("mpi", task, index, 0)


@pytest.fixture
def ranks(tmp_path, until):
    ranks = Ranks(tmp_path)
    yield ranks
    ranks.stop(*REPLICAS)
    until(lambda: all(ranks.phase(replica) in (None, *FINAL_POD_PHASES) for replica in REPLICAS))


def test_manifest_is_a_gang_of_three_that_ends_with_the_master():
    spec = spec_of("mpi")
    assert {task.name: task.replicas for task in spec.tasks} == {"master": 1, "worker": 2}
    assert spec.min_available == 3
    assert [str(policy.action) for policy in spec.task("master").policies] == ["CompleteJob"]


def test_two_workers_agree_on_pi(ranks, until):
    ranks.start((EXAMPLES / "mpi" / "integrate.py").read_text())
    until(lambda: ranks.phase(REPLICAS[0]) in FINAL_POD_PHASES)
    log = ranks.log(REPLICAS[0])
    assert ranks.phase(REPLICAS[0]) == PodPhase.SUCCEEDED, log
    for rank, replica in enumerate(REPLICAS[1:]):
        assert f"rank {rank} of 2 is at {ranks.addresses[replica]}\n" in log
        assert ranks.phase(replica) == PodPhase.RUNNING
    assert f"strips: {math.pi:.9f}" in log


def test_stopped_worker_ends_its_rank_and_mpirun(ranks, until):
    ranks.start(WAITING)
    until(lambda: "all 2 are up" in ranks.log(REPLICAS[0]))
    ranks.stop(REPLICAS[2])
    until(lambda: ranks.phase(REPLICAS[0]) == PodPhase.FAILED)
