"""An API server that is away for a while, and a line to it on which requests fail in every way, under load.

`HEKLA_AWAY_SECONDS` says how long it is away (15; a full minute by hand), `HEKLA_SEED` what goes wrong.
"""

import os
import random
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.controller.fleet import RESTART, Fleet, are_over, audit, faulty, is_cleaned
from tests.kubernetes.control_plane import ControlPlane
from tests.kubernetes.proxy import Fate
from tests.support.workers import Workers

from hekla.apps.clusters.models import Lease
from hekla.apps.jobs.models import Job

AWAY_SECONDS = float(os.environ.get("HEKLA_AWAY_SECONDS", "15"))
SEED = int(os.environ.get("HEKLA_SEED", "3"))
SHARE = 0.08
_BEFORE, _MEANWHILE, _AFTER = 6, 4, 4
"""How many jobs come before it is away, while it is, and afterwards."""
_MACHINE = {"hekla.dev/test": "faults"}


@pytest.fixture
def fleet(transactional_db: None, settings: Any, tmp_path: Path, mortal_control_plane: ControlPlane) -> Iterator[Fleet]:
    settings.HEKLA_HOME = tmp_path / "home"
    plane = mortal_control_plane
    plane.add_nodes(4, labels=_MACHINE)
    with Fleet.of(plane, "default", plane.token, settings.HEKLA_HOME, _MACHINE) as made:
        yield made


class People:
    """Who submit gangs of many sizes, and abort some."""

    def __init__(self, fleet: Fleet, dice: random.Random) -> None:
        self._fleet, self._dice, self._count = fleet, dice, 0
        self.ends_of: dict[str, str] = {}

    def submit(self, count: int, pause_seconds: float) -> None:
        """So many jobs, one after the other."""
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
@pytest.mark.kubernetes
def test_whatever_goes_wrong_on_the_way_to_the_server_every_gang_comes_to_its_end(fleet: Fleet, tmp_path: Path) -> None:
    dice = random.Random(SEED)
    people = People(fleet, dice)
    fleet.proxy.judge = faulty(dice, SHARE)
    with Workers(tmp_path).at_work() as workers:
        fleet.until(lambda: Lease.objects.exclude(holder="").exists(), workers.said)
        people.submit(_BEFORE, 0.5)
        fleet.plane.kill_api_server()
        people.submit(_MEANWHILE, AWAY_SECONDS / _MEANWHILE)
        fleet.plane.start_api_server()
        people.submit(_AFTER, 0.2)
        fleet.until(lambda: bool(fleet.end_what_has_no_end()) or are_over(), workers.said)
        fleet.proxy.judge = faulty(dice, SHARE / 4)  # what is left of a job is removed whole, or later as a whole
        for job in Job.objects.order_by("pk")[::4]:
            fleet.delete(job)
        fleet.until(lambda: all(map(is_cleaned, Job.objects.exclude(deleted_at=None))), workers.said)
        said = workers.said()
    fleet.proxy.judge = lambda _: Fate.PASSED
    assert dict(Job.objects.values_list("name", "phase")) == people.ends_of
    audit(fleet)
    assert not [found for job in Job.objects.exclude(deleted_at=None) for found in fleet.left(job)]
    assert "Traceback" not in said, said[-4000:]
    print({"seed": SEED, **Counter(one.fate.name for one in fleet.proxy.asked), "jobs": Job.objects.count()})
