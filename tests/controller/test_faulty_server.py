"""An API server that is down for a while, and a proxy on which requests fail in every way, under load.

`HEKLA_SEED` sets the failures.
"""

import os
import random
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.controller.fleet import RESTART, Fleet, are_all_over, audit, faulty, is_cleaned
from tests.kubernetes.control_plane import ControlPlane
from tests.kubernetes.proxy import RequestFate
from tests.support.examples import examples
from tests.support.workers import Workers

from hekla.apps.clusters.models import Lease
from hekla.apps.jobs.models import Job

AWAY_SECONDS = examples(150)
SEED = int(os.environ.get("HEKLA_SEED", "3"))
SHARE = 0.08
_JOBS_BEFORE, _JOBS_DURING, _JOBS_AFTER = 6, 4, 4
"""The number of jobs before, during and after the outage."""
_MACHINE = {"hekla.dev/test": "faults"}


@pytest.fixture
def fleet(
    transactional_db: None, settings: Any, tmp_path: Path, disposable_control_plane: ControlPlane
) -> Iterator[Fleet]:
    settings.HEKLA_HOME = tmp_path / "home"
    plane = disposable_control_plane
    plane.add_nodes(4, labels=_MACHINE)
    with Fleet.of(plane, "default", plane.token, settings.HEKLA_HOME, _MACHINE) as made:
        yield made


class Users:
    """Users who submit gangs of many sizes and abort some."""

    def __init__(self, fleet: Fleet, dice: random.Random) -> None:
        self._fleet, self._dice, self._count = fleet, dice, 0
        self.ends_of: dict[str, str] = {}

    def submit(self, count: int, pause_seconds: float) -> None:
        """Submits this many jobs, one after the other."""
        for _ in range(count):
            self._submit()
            time.sleep(pause_seconds)

    def _submit(self) -> None:
        self._count += 1
        name, kind = f"job-{self._count}", self._count % 6
        replicas, seconds = self._dice.choice([1, 2, 3, 5, 8]), self._dice.uniform(0.2, 2)
        job = self._fleet.submit(
            name, replicas, 60 if kind == 5 else seconds, exit_code=int(kind == 3), policies=RESTART
        )
        self.ends_of[name] = "aborted" if kind == 5 else "failed" if kind == 3 else "completed"
        if kind == 5:
            self._fleet.abort(job)


@pytest.mark.slow
@pytest.mark.thorough
@pytest.mark.kubernetes
def test_every_gang_completes_despite_an_outage_and_failing_requests(fleet: Fleet, tmp_path: Path) -> None:
    dice = random.Random(SEED)
    users = Users(fleet, dice)
    fleet.proxy.judge = faulty(dice, SHARE)
    with Workers(tmp_path).at_work() as workers:
        fleet.until(lambda: Lease.objects.exclude(holder="").exists(), workers.output)
        users.submit(_JOBS_BEFORE, 0.5)
        fleet.plane.kill_api_server()
        users.submit(_JOBS_DURING, AWAY_SECONDS / _JOBS_DURING)
        fleet.plane.start_api_server()
        users.submit(_JOBS_AFTER, 0.2)
        fleet.until(lambda: bool(fleet.end_endless_pods()) or are_all_over(), workers.output)
        fleet.proxy.judge = faulty(
            dice, SHARE / 4
        )  # the objects of a job are removed together, now or in a later sweep
        for job in Job.objects.order_by("pk")[::4]:
            fleet.delete(job)
        fleet.until(
            lambda: all(map(is_cleaned, Job.objects.exclude(deleted_at=None))),
            lambda: workers.output() + workers.stacks(),
        )
        output = workers.output()
    fleet.proxy.judge = lambda _: RequestFate.PASSED
    assert dict(Job.objects.values_list("name", "phase")) == users.ends_of
    audit(fleet)
    assert not [found for job in Job.objects.exclude(deleted_at=None) for found in fleet.remaining(job)]
    assert "Traceback" not in output, output[-4000:]
    print({"seed": SEED, **Counter(one.fate.name for one in fleet.proxy.requests), "jobs": Job.objects.count()})
