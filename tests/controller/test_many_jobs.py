"""Many jobs on a full cluster, from submission to end: none is lost, stuck or run twice.

`HEKLA_TEST_JOBS` sets how many (60 by default). With `-s` the cost of each part is printed.
"""

import itertools
import os
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from django.db import connection
from tests.controller.conftest import World
from tests.controller.test_cluster_controller import submit
from tests.support.auditor import audit_everything

from hekla.apps.event_log import selectors as event_log
from hekla.apps.jobs.models import Job, Pod
from hekla.controller.backends import backend_of
from hekla.controller.controllers import controllers

JOBS, REPLICAS, AT_ONCE, PARTS = int(os.environ.get("HEKLA_TEST_JOBS", "60")), 10, 60, 3
NODE = {"cpu": "64", "memory": "256Gi"}


@pytest.fixture
def crowd(transactional_db, settings, tmp_path) -> Iterator[World]:
    settings.HEKLA_HOME, settings.CHECK_ENGINE = tmp_path, False
    controllers.reset()
    nodes = [{"name": "node", "count": 100, "allocatable": NODE}]
    times = {"prepare_seconds": {"min": 1, "max": 5}, "run_seconds": {"min": 20, "max": 90}}
    yield World.found("simulated", {"nodes": nodes, "seed": 1, "speed": 60, **times})
    controllers.reset()


@dataclass
class Cost:
    """The cost of a part of the run: database statements and CPU seconds, for this many events."""

    events: int = 0
    statements: int = 0
    seconds: float = 0.0

    def __call__(self, execute, sql, params, many, context):
        self.statements += 1
        return execute(sql, params, many, context)


def _reconcile(world: World, cost: Cost) -> None:
    before, began = event_log.last_number(), time.process_time()
    with connection.execute_wrapper(cost):
        controllers.reconcile(world.cluster)
    cost.seconds += time.process_time() - began
    cost.events += event_log.last_number() - before


def _run_jobs(world: World, first: int, last: int) -> Cost:
    """Submits these jobs, at most a full cluster at once, and reconciles until they complete."""
    cost, number, backend = Cost(), first, backend_of(world.cluster)
    idle_since = time.monotonic()
    while (lives := Job.objects.exclude(phase="completed").count()) or number < last:
        more = min(last - number, AT_ONCE - lives)
        for at in range(number, number + more):
            submit(world, f"job-{at}", ["x"], replicas=REPLICAS)
        number, events = number + more, cost.events
        _reconcile(world, cost)
        idle_since = time.monotonic() if cost.events > events else idle_since
        assert time.monotonic() - idle_since < 30, Counter(Job.objects.values_list("phase", flat=True))
        backend.wait(0.1)
    return cost


def test_no_job_is_lost_and_the_cost_per_event_is_constant(crowd: World) -> None:
    marks = [JOBS * part // PARTS for part in range(PARTS + 1)]
    costs = [_run_jobs(crowd, first, last) for first, last in itertools.pairwise(marks)]
    for last, cost in zip(marks[1:], costs, strict=True):
        each = f"{cost.statements / cost.events:.2f} statements, {cost.seconds / cost.events * 1e6:.0f} us"
        print(f"up to job {last}: {cost.events} events, each {each}")
    assert Counter(Job.objects.values_list("phase", flat=True)) == {"completed": JOBS}
    assert Counter(Pod.objects.values_list("phase", "attempt")) == {("succeeded", 1): JOBS * REPLICAS}
    first, *_, last = (cost.statements / cost.events for cost in costs)
    assert last < first * 1.5
    audit_everything()
