"""Two controllers of one cluster, one of which stands still for longer than its lease, in the middle of a request.

What it does when it goes on reaches neither the rows nor a pod otherwise than the rows say. `HEKLA_STOPS` says how
often it is stopped (7), `HEKLA_SEED` what happens meanwhile.
"""

import os
import random
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from django.db import connection
from tests.controller.fleet import RESTART, Fleet, are_over, audit, is_cleaned, is_over
from tests.kubernetes.control_plane import ControlPlane
from tests.kubernetes.proxy import Asked, Held
from tests.support.workers import Workers

from hekla.apps.clusters.models import Lease
from hekla.apps.jobs.models import Job
from hekla.lib import clock

STOPS = int(os.environ.get("HEKLA_STOPS", "7"))
SEED = int(os.environ.get("HEKLA_SEED", "3"))
CAUGHT_WITHIN_SECONDS = 10.0
_OF_ASYNCIO = re.compile(r"^E asyncio: Fatal error on SSL protocol.*?(?=^[A-Z] |\Z)", re.DOTALL | re.MULTILINE)
"""What it says of a connection that is closed, because the lease is lost, while there is something to read from it."""
_MOMENTS = (
    ("POST pods", False),
    ("POST pods/binding", False),
    ("DELETE pods", False),
    ("POST pods", True),
    ("PATCH pods", False),
    ("POST services", False),
    ("POST pods/binding", True),
    ("", False),
)
"""Requests, and whether they or their answers are on their way while their sender stands still; the last: any of them.
Where that one comes upon a transaction, the other controller waits until the database gives it up."""
_WRITTEN = """
    CREATE TABLE test_written (role text, written text, holder text);
    CREATE FUNCTION test_write() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        IF current_setting('application_name') LIKE 'control-%%' THEN
            INSERT INTO test_written SELECT current_setting('application_name'), TG_TABLE_NAME || ' ' || TG_OP,
                (SELECT holder FROM clusters_lease);
        END IF;
        RETURN NULL;
    END $$;
"""
_OF_CONTROLLERS = ("clusters_node", "jobs_job", "jobs_pod", "event_log_loggedevent")


@pytest.fixture
def fleet(
    transactional_db: None, settings: Any, tmp_path: Path, small_cluster: ControlPlane, given_namespace: str
) -> Iterator[Fleet]:
    settings.HEKLA_HOME = tmp_path / "home"
    with Fleet.beside_others(small_cluster, given_namespace, settings.HEKLA_HOME, machines=3) as made:
        yield made


@pytest.fixture
def written(transactional_db: None) -> Iterator[None]:
    """The database notes which controller writes what, and who has the lease at that moment."""
    with connection.cursor() as cursor:
        cursor.execute(_WRITTEN)
        for table in _OF_CONTROLLERS:
            cursor.execute(
                f"CREATE TRIGGER test_write AFTER INSERT OR UPDATE OR DELETE ON {table}"
                " FOR EACH ROW EXECUTE FUNCTION test_write()"
            )
    yield
    with connection.cursor() as cursor:
        cursor.execute("DROP FUNCTION test_write CASCADE; DROP TABLE test_written")


class Fight:
    """Rounds in which the controller that works is stopped, the other takes over, and the first goes on."""

    def __init__(self, fleet: Fleet, workers: Workers, dice: random.Random) -> None:
        self._fleet, self._workers, self._dice = fleet, workers, dice
        self.ends_of: dict[str, str] = {}
        self.caught: Counter[str] = Counter()

    def round(self, number: int) -> None:
        """One stop."""
        kind, answered = _MOMENTS[number % len(_MOMENTS)]
        before = self._lease()
        pid, role = int(before.holder.rpartition(":")[2]), self._workers.holders()[before.holder]
        held = self._fleet.proxy.catch(lambda asked: kind in ("", asked.kind) and _is_of(asked, pid), answered=answered)
        jobs = self._submit(number)
        if kind == "PATCH pods":
            self._fleet.until(lambda: Job.objects.get(pk=jobs[-1].pk).phase == "running")
            self._abort(jobs[-1])
        self._stop(role, held, before.epoch)

    def _stop(self, role: str, held: Held, epoch: int) -> None:
        is_caught = held.caught.wait(CAUGHT_WITHIN_SECONDS)
        self._workers.pause(role)
        try:
            self._fleet.until(lambda: self._lease().epoch > epoch, self._workers.said)
            if is_caught and held.asked is not None:
                self.caught[f"{held.asked.kind} {held.asked.status}"] += 1
                self._meanwhile(held.asked)
        finally:
            self._fleet.proxy.free()
            self._workers.resume(role)

    def _meanwhile(self, asked: Asked) -> None:
        """The other controller has time to bring the job in question to its end, or a person ends it."""
        job = Job.objects.filter(uid=_job_of(asked)).first()
        if job is None:
            return
        if self._dice.random() < 0.5:
            self._abort(job)
        self._fleet.until(lambda: is_over(job), self._workers.said)
        if self._dice.random() < 0.6:
            self._fleet.delete(job)
            self._fleet.until(lambda: is_cleaned(job), self._workers.said)

    def _submit(self, number: int) -> list[Job]:
        made = []
        for at in range(3):
            code = int(at == 1 and number % 2)
            name, replicas = f"job-{number}-{at}", self._dice.randint(1, 5)
            seconds = self._dice.uniform(0.2, 1.5) if at < 2 else 30.0 if number % 7 == 4 else 1.0
            made.append(self._fleet.submit(name, replicas, seconds, exit_code=code, policies=RESTART))
            self.ends_of[name] = "failed" if code else "completed"
        return made

    def _abort(self, job: Job) -> None:
        self._fleet.abort(job)
        self.ends_of.pop(job.name, None)

    def _lease(self) -> Lease:
        """Of somebody who works: one that is given up has no holder."""
        self._fleet.until(lambda: Lease.objects.exclude(holder="").filter(expires_at__gt=clock.now()).exists())
        return Lease.objects.get()


def _is_of(asked: Asked, pid: int) -> bool:
    return any(line.laddr.port == asked.port for line in psutil.Process(pid).net_connections("inet"))


def _job_of(asked: Asked) -> str | None:
    """By the names of pods and services."""
    return next((part for part in asked.name.split("-") if len(part) == 32), None)


@pytest.mark.slow
@pytest.mark.kubernetes
def test_a_controller_that_slept_longer_than_its_lease_changes_nothing(
    fleet: Fleet, written: None, tmp_path: Path
) -> None:
    dice = random.Random(SEED)
    with Workers(tmp_path).at_work() as workers:
        fleet.until(lambda: Lease.objects.exclude(holder="").exists(), workers.said)
        fight = Fight(fleet, workers, dice)
        for number in range(STOPS):
            fight.round(number)
        fleet.until(are_over, workers.said)
        said, without = workers.said(), _written_without_a_lease(workers.holders())
    ends = dict(Job.objects.filter(name__in=fight.ends_of).values_list("name", "phase"))
    assert ends == fight.ends_of, said[-4000:]
    for job in Job.objects.filter(deleted_at=None):
        fleet.delete(job)
    Lease.objects.update(expires_at=clock.now())
    fleet.sweep()
    audit(fleet)
    assert without == []
    ours = _OF_ASYNCIO.sub("", said)
    assert "platform/hekla/" not in ours, ours[-4000:]  # as tracebacks name files; Celery may tell of its broker
    assert "what the engine kept is not what there is" not in said
    print({"seed": SEED, "caught": dict(fight.caught), "jobs": Job.objects.count()})


def _written_without_a_lease(roles: dict[str, str]) -> list[tuple[str, ...]]:
    """Who wrote what while another held the lease."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT DISTINCT role, written, holder FROM test_written")
        return [row for row in cursor.fetchall() if roles.get(row[2]) != row[0]]
