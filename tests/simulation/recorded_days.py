"""Random days of a simulated cluster, made by the services and the controller in simulated time, for the policy lab."""

import heapq
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import count
from random import Random
from typing import Any

from tests.controller.conftest import World

from hekla.apps.accounts.roles import PlatformRole
from hekla.apps.clusters import services as clusters
from hekla.apps.event_log.services import PLATFORM
from hekla.apps.jobs import services as jobs
from hekla.apps.jobs.models import Job
from hekla.apps.jobs.services import priority as priorities
from hekla.apps.queues import services as queues
from hekla.apps.queues.models import Queue
from hekla.controller.backends import backend_of
from hekla.controller.cluster_controller import ClusterController
from hekla.domain.errors import HeklaError
from hekla.domain.jobspec import JobSpec
from hekla.domain.policies import LifecycleAction
from hekla.lib import clock

BEGIN = datetime(2026, 6, 1, 8, tzinfo=UTC)
POLICY = """\
actions: "enqueue, allocate, preempt, reclaim, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}]
- plugins: [{name: drf}, {name: predicates}, {name: proportion}, {name: nodeorder}, {name: binpack}]
"""
_SIZES = ((1, 1), (1, 2), (1, 4), (2, 4), (4, 2), (3, 1))
_INSTANT = timedelta(microseconds=1)


@dataclass
class RecordedDays:
    """A cluster with two queues. `notices`: how long after the end of a pod the controller sees it, at most."""

    seed: int
    jobs: int = 30
    notices: float = 1.0
    now: datetime = BEGIN
    dice: Random = field(init=False)

    def make(self) -> World:
        """Submit random jobs, and let the time pass until all have ended."""
        self.dice = Random(self.seed)
        with clock.simulated(lambda: self.now):
            self._found()
            self._plan_all()
            while (at := self._next()) is not None:
                self.now = max(self.now + _INSTANT, at)
                while self._plans and self._plans[0][0] <= self.now:
                    self._try(heapq.heappop(self._plans)[2])
                if self.dice.random() < 0.8:
                    self._act()
                else:  # it is seen a little later, maybe with what follows
                    self._plan((self.now - BEGIN).total_seconds() + self.dice.uniform(0.5, 20), self._act)
        return self._world

    def _act(self) -> None:
        self._acted = self.now
        self._controller.reconcile(self._world.cluster)

    def _found(self) -> None:
        nodes = [{"name": "n", "count": 3, "allocatable": {"cpu": "4", "memory": "8Gi", "pods": "20"}}]
        config = {"nodes": nodes, "seed": self.seed, "speed": 1, "prepare_seconds": {"min": 0, "max": 9}}
        self._world = world = World.found("simulated", config)
        world.alice.platform_role = PlatformRole.OPERATOR
        world.alice.save()
        queues.create(cluster=world.cluster, name="second", values={"weight": 2}, actor=PLATFORM, now=self.now)
        clusters.set_policy(world.cluster, POLICY, note="", by=None, actor=PLATFORM, now=self.now)
        self._controller, self._backend = ClusterController(world.cluster.pk), backend_of(world.cluster)
        for timer in (self._controller.reading_nodes, self._controller.sweeping, self._controller.purging):
            timer.every = timedelta(hours=12)
        self._act()
        self._plans: list[tuple[datetime, int, Callable[[], Any]]] = []
        self._numbers = count()

    def _plan(self, seconds: float, act: Callable[[], Any]) -> None:
        heapq.heappush(self._plans, (BEGIN + timedelta(seconds=seconds), next(self._numbers), act))

    def _plan_all(self) -> None:
        dice = self.dice
        for number in range(self.jobs):
            at = dice.uniform(10, 3 * 3600)
            self._plan(at, lambda number=number: self._submit(number))
            if dice.random() < 0.15:
                self._plan(at + dice.uniform(1, 3000), lambda number=number: self._abort(number))
            if dice.random() < 0.15:
                self._plan(at + dice.uniform(1, 3000), lambda number=number: self._raise(number))
        self._plan(dice.uniform(3600, 7200), self._weigh)

    def _next(self) -> datetime | None:
        """When something happens next: planned here, or the start or end of a pod, noticed a little later."""
        last = self._acted.timestamp()
        looks = [self._plans[0][0]] if self._plans else []
        for plan in self._backend.plans_ending_after(last):  # type: ignore[attr-defined]
            at = plan.runs_at if plan.runs_at > last else plan.ends_at + self.dice.uniform(0, self.notices)
            looks.append(datetime.fromtimestamp(at, UTC) + _INSTANT)
        return min(looks, default=None)

    def _try(self, act: Callable[[], Any]) -> None:
        with suppress(HeklaError):  # it may be over already
            act()

    def _submit(self, number: int) -> None:
        pods, cpus = self.dice.choice(_SIZES)
        least = {"min_available": self.dice.randint(1, pods)} if pods > 1 and self.dice.random() < 0.5 else {}
        task = {
            "name": "w",
            "replicas": pods,
            "command": ["true"],
            "resources": {"cpu": str(cpus)},
            "env": {
                "HEKLA_SIM_SECONDS": str(self.dice.randint(20, 4000)),
                "HEKLA_SIM_EXIT": "1" if self.dice.random() < 0.1 else "0",
            },
            **least,
        }
        queue = self.dice.choice(("default", "second"))
        priority = self.dice.choice((0, 0, 0, 100))
        spec = JobSpec.parse({"name": f"job-{number}", "queue": queue, "priority": priority, "tasks": [task], **least})
        jobs.submit(spec=spec, tenant=self._world.tenant, user=self._world.alice, now=self.now)

    def _job(self, number: int) -> Job:
        return Job.objects.get(name=f"job-{number}")

    def _abort(self, number: int) -> None:
        jobs.command(self._job(number), LifecycleAction.ABORT_JOB, user=self._world.alice, now=self.now)

    def _raise(self, number: int) -> None:
        priorities.set_priority(self._job(number), 50, user=self._world.alice, now=self.now)

    def _weigh(self) -> None:
        queue = Queue.objects.get(name="second")
        queues.change(queue, {"weight": 5}, by=self._world.alice, actor=PLATFORM, now=self.now)
