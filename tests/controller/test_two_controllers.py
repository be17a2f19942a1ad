"""Two controllers of one cluster. One stands still for longer than its lease, in the middle of a request.

When it continues, it changes neither rows nor pods against the decisions of the other. `HEKLA_SEED` sets what happens
in between.
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
from tests.controller.fleet import RESTART, Fleet, are_all_over, audit, is_cleaned, is_over
from tests.kubernetes.control_plane import ControlPlane
from tests.kubernetes.proxy import HeldRequest, ProxiedRequest
from tests.support.examples import examples
from tests.support.workers import Workers

from hekla.apps.clusters.models import Lease
from hekla.apps.jobs.models import Job
from hekla.controller.cluster_controller import CACHE_DIFFERS
from hekla.lib import clock

STOPS = examples(40)
SEED = int(os.environ.get("HEKLA_SEED", "3"))
CAUGHT_WITHIN_SECONDS = 10.0
_OF_ASYNCIO = re.compile(r"^E asyncio: Fatal error on SSL protocol.*?(?=^[A-Z] |\Z)", re.DOTALL | re.MULTILINE)
"""The log of asyncio when a connection with unread data is closed, because the lease is lost."""
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
"""Requests, and whether the response (instead of the request) is in transit while the sender stands still.

The empty kind matches any request. If it interrupts a transaction, the other controller waits until the
database ends it.
"""
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
    transactional_db: None, settings: Any, tmp_path: Path, small_cluster: ControlPlane, granted_namespace: str
) -> Iterator[Fleet]:
    settings.HEKLA_HOME = tmp_path / "home"
    with Fleet.with_own_nodes(small_cluster, granted_namespace, settings.HEKLA_HOME, machines=3) as made:
        yield made


@pytest.fixture
def written(transactional_db: None) -> Iterator[None]:
    """Triggers record which controller writes what, and who has the lease at that moment."""
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


class Takeovers:
    """Rounds in which the active controller is paused, the other takes over, and the first continues."""

    def __init__(self, fleet: Fleet, workers: Workers, dice: random.Random) -> None:
        self._fleet, self._workers, self._dice = fleet, workers, dice
        self.ends_of: dict[str, str] = {}
        self.caught: Counter[str] = Counter()

    def round(self, number: int) -> None:
        """Pauses the active controller once."""
        kind, answered = _MOMENTS[number % len(_MOMENTS)]
        before = self._lease()
        pid, role = int(before.holder.rpartition(":")[2]), self._workers.holders()[before.holder]
        held = self._fleet.proxy.catch(
            lambda request: kind in ("", request.kind) and _is_from(request, pid), answered=answered
        )
        jobs = self._submit(number)
        if kind == "PATCH pods":
            self._fleet.until(lambda: Job.objects.get(pk=jobs[-1].pk).phase == "running")
            self._abort(jobs[-1])
        self._stop(role, held, before.epoch)

    def _stop(self, role: str, held: HeldRequest, epoch: int) -> None:
        is_caught = held.caught.wait(CAUGHT_WITHIN_SECONDS)
        self._workers.pause(role)
        try:
            self._fleet.until(lambda: self._lease().epoch > epoch, self._workers.output)
            if is_caught and held.request is not None:
                self.caught[f"{held.request.kind} {held.request.status}"] += 1
                self._let_other_work(held.request)
        finally:
            self._fleet.proxy.free()
            self._workers.resume(role)

    def _let_other_work(self, request: ProxiedRequest) -> None:
        """The other controller completes the job in question, or a person aborts it."""
        job = Job.objects.filter(uid=_job_of(request)).first()
        if job is None:
            return
        if self._dice.random() < 0.5:
            self._abort(job)
        self._fleet.until(lambda: is_over(job), self._workers.output)
        if self._dice.random() < 0.6:
            self._fleet.delete(job)
            self._fleet.until(lambda: is_cleaned(job), self._workers.output)

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
        """The valid lease of an active controller. A released lease has no holder."""
        self._fleet.until(lambda: Lease.objects.exclude(holder="").filter(expires_at__gt=clock.now()).exists())
        return Lease.objects.get()


def _is_from(request: ProxiedRequest, pid: int) -> bool:
    return any(line.laddr.port == request.port for line in psutil.Process(pid).net_connections("inet"))


def _job_of(request: ProxiedRequest) -> str | None:
    """The uid of the job, from the name of the pod or service."""
    return next((part for part in request.name.split("-") if len(part) == 32), None)


@pytest.mark.slow
@pytest.mark.thorough
@pytest.mark.kubernetes
def test_paused_controller_changes_nothing_after_its_lease(fleet: Fleet, written: None, tmp_path: Path) -> None:
    dice = random.Random(SEED)
    with Workers(tmp_path).at_work() as workers:
        fleet.until(lambda: Lease.objects.exclude(holder="").exists(), workers.output)
        takeovers = Takeovers(fleet, workers, dice)
        for number in range(STOPS):
            takeovers.round(number)
        fleet.until(are_all_over, workers.output)
        output, writes = workers.output(), _writes_without_lease(workers.holders())
    ends = dict(Job.objects.filter(name__in=takeovers.ends_of).values_list("name", "phase"))
    assert ends == takeovers.ends_of, output[-4000:]
    for job in Job.objects.filter(deleted_at=None):
        fleet.delete(job)
    Lease.objects.update(expires_at=clock.now())
    fleet.sweep()
    audit(fleet)
    assert writes == []
    hekla_output = _OF_ASYNCIO.sub("", output)
    assert "platform/hekla/" not in hekla_output, hekla_output[
        -4000:
    ]  # as file names in tracebacks; Celery may log warnings about its broker
    assert CACHE_DIFFERS not in output
    print({"seed": SEED, "caught": dict(takeovers.caught), "jobs": Job.objects.count()})


def _writes_without_lease(roles: dict[str, str]) -> list[tuple[str, ...]]:
    """The writes of a controller while another held the lease."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT DISTINCT role, written, holder FROM test_written")
        return [row for row in cursor.fetchall() if roles.get(row[2]) != row[0]]
