"""One day of a cluster in simulated time, minute by minute, through the services that the controller calls.

People submit jobs, pods are created and bound, and what a backend would report of them is recorded; use is measured
once a minute. Left out are the engine (a simple rule places gangs) and the backend, which other benchmarks measure.
After each minute the measures are rolled up, as the controller does. All queues have the same part of the GPUs.
"""

import heapq
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import count
from uuid import UUID

from hekla.apps.accounts.models import User
from hekla.apps.clusters import services as clusters
from hekla.apps.clusters.models import Cluster
from hekla.apps.jobs import services as jobs
from hekla.apps.jobs.models import Job, Pod
from hekla.apps.jobs.services.decisions import EvictionReason, JobDecision
from hekla.apps.jobs.services.observations import Sighting
from hekla.apps.measures import queue_services
from hekla.apps.measures import services as measures
from hekla.apps.measures.models import StaleHour
from hekla.apps.usage import services as usage
from hekla.apps.usage.services import Reading
from hekla.bench.operations import shares
from hekla.bench.operations.machines import Machines
from hekla.bench.operations.meter import CpuMeter
from hekla.bench.operations.size import OperationsSize
from hekla.bench.operations.workload import GPU, DayDemand
from hekla.bench.operations.world import BenchTeam, OperationsWorld
from hekla.domain.addresses import Replica
from hekla.domain.phases import GangPhase, JobPhase, PodPhase

_MINUTE, _HOUR_MINUTES = timedelta(minutes=1), 60
AFTER = measures.LAG + timedelta(seconds=5)
"""When a minute is rolled up, after its end."""
_THIN_MINUTES, _NODE_MINUTES = 10, 30
_PER_NODE_CHANGE = 500


@dataclass(order=True, slots=True)
class _Due:
    """What a backend reports of a pod at a time."""

    at: datetime
    number: int
    job: UUID = field(compare=False)
    pod: int = field(compare=False)
    sighting: Sighting = field(compare=False)


@dataclass(slots=True)
class _Running:
    place: int
    gpus: int
    busy: int | None
    is_started: bool = False


@dataclass(slots=True)
class HourCost:
    """CPU seconds that rolling up took in a simulated hour, and how many stale hours waited at its end."""

    process: float = 0.0
    database: float = 0.0
    waiting: int = 0

    @property
    def seconds(self) -> float:
        return self.process + self.database


class SimulatedDay:
    """The state of the simulated cluster. `costs`: of rolling up, by hour."""

    def __init__(self, size: OperationsSize, world: OperationsWorld, begin: datetime) -> None:
        self._world, self._begin, self._size = world, begin, size
        self._work, self._machines = DayDemand(size), Machines(size.nodes)
        self._due: list[_Due] = []
        self._numbers, self._names = count(), count()
        self._pods: dict[int, _Running] = {}
        self._meter = CpuMeter()
        self._lacking = Counter[int]()
        self.costs: list[HourCost] = []

    def run(self, say: Callable[[str], None]) -> None:
        """Let the day pass."""
        self._observe_nodes(self._begin)
        for minute in range(1, self._size.minutes + 1):
            now = self._begin + minute * _MINUTE
            self._observe(now)
            if minute % _HOUR_MINUTES == 0:
                self._evict(now)
            if minute % _NODE_MINUTES == 0:
                self._observe_nodes(now)
            self._submit(minute, now)
            self._admit(now)
            self._bind(now)
            self._measure(now)
            if minute % _THIN_MINUTES == 0:
                usage.thin(now=now)
            self._roll_up(minute, now + AFTER)
            if minute % _HOUR_MINUTES == 0:
                cost = self.costs[-1]
                say(f"hour {minute // 60}: {len(self._pods):,} pods, {cost.seconds:.1f} s of CPU to roll up")

    @property
    def _cluster(self) -> Cluster:
        return self._world.cluster

    def _observe_nodes(self, now: datetime) -> None:
        """Some nodes are not ready, others each time."""
        down = [self._work.one_of(self._size.nodes) for _ in range(self._size.nodes // _PER_NODE_CHANGE)]
        clusters.observe_nodes(self._cluster, self._machines.facts(down=down), now=now, epoch=self._world.epoch)

    def _submit(self, minute: int, now: datetime) -> None:
        """Submit the jobs of this minute. A person submits up to ten at once."""
        wanted = self._work.arrivals(minute)
        while wanted > 0:
            some = min(wanted, 1 + self._work.one_of(10))
            wanted -= some
            member = self._world.members[self._work.submitter()]
            self._submit_some(member, some, now)

    def _submit_some(self, member: BenchTeam, some: int, now: datetime) -> None:
        user: User = member.people[self._work.one_of(len(member.people))]
        specs = [self._work.spec(f"job-{next(self._names)}", member.queue) for _ in range(some)]
        jobs.submit_many(specs=specs, tenant=member.tenant, user=user, now=now)

    def _admit(self, now: datetime) -> None:
        """Admit all gangs that wait, also those of jobs that start again, and create their pods."""
        waiting = Job.objects.filter(phase=JobPhase.PENDING, gang_phase=GangPhase.PENDING).order_by("pk")
        decisions = [
            JobDecision(pk, version, revision, gang_phase=GangPhase.INQUEUE)
            for pk, version, revision in waiting.values_list("pk", "version", "revision")
        ]
        jobs.commit(self._cluster.pk, self._world.epoch, decisions, now=now)
        for one in decisions:
            jobs.sync(self._cluster.pk, self._world.epoch, one.job_id, address_of=_address, now=now)

    def _bind(self, now: datetime) -> None:
        """Place gangs that wait, oldest first. A gang whose pods do not all fit waits."""
        waiting: dict[int, list[Pod]] = defaultdict(list)
        for pod in Pod.objects.filter(phase=PodPhase.PENDING, stopping=False).order_by("job_id", "pk"):
            waiting[pod.job_id].append(pod)
        decisions, lives = [], []
        self._lacking.clear()
        for job in Job.objects.filter(pk__in=waiting).order_by("pk"):
            pods = waiting[job.pk]
            gpus = int(job.spec["tasks"][0]["resources"][GPU])
            places = self._machines.place(len(pods), gpus)
            if places is not None:
                binds = {pod.pk: f"node-{place}" for pod, place in zip(pods, places, strict=True)}
                decisions.append(
                    JobDecision(job.pk, job.version, job.revision, gang_phase=GangPhase.RUNNING, binds=binds)
                )
                lives.append((job, pods, places, gpus))
            else:
                self._lacking[job.queue_id] += len(pods) * gpus
        jobs.commit(self._cluster.pk, self._world.epoch, decisions, now=now)
        for life in lives:
            self._plan(*life, now)

    def _plan(self, job: Job, pods: Sequence[Pod], places: Sequence[int], gpus: int, now: datetime) -> None:
        for pod, place, plan in zip(pods, places, self._work.life(len(pods)), strict=True):
            self._pods[pod.pk] = _Running(place, gpus, plan.busy)
            self._will(job.uid, pod, PodPhase.RUNNING, now + timedelta(seconds=plan.starts))
            self._will(job.uid, pod, plan.phase, now + timedelta(seconds=plan.ends))

    def _will(self, job: UUID, pod: Pod, phase: PodPhase, at: datetime) -> None:
        code = {PodPhase.SUCCEEDED: 0, PodPhase.FAILED: 1}.get(phase)
        found = Sighting(pod.task, pod.index, pod.attempt, phase, at, exit_code=code)
        heapq.heappush(self._due, _Due(at, next(self._numbers), job, pod.pk, found))

    def _observe(self, now: datetime) -> None:
        """Record what the backend reports since the last minute, job by job."""
        by_job: dict[UUID, list[Sighting]] = defaultdict(list)
        while self._due and self._due[0].at <= now:
            due = heapq.heappop(self._due)
            if due.pod not in self._pods:
                continue  # it was evicted before
            by_job[due.job].append(due.sighting)
            self._pods[due.pod].is_started = True
            if due.sighting.phase.is_final:
                self._end(due.pod)
        for job, sightings in by_job.items():
            self._record(job, sightings, now)

    def _record(self, job: UUID, sightings: Sequence[Sighting], now: datetime) -> None:
        jobs.observe(self._cluster.pk, self._world.epoch, job, sightings, address_of=_address, now=now)

    def _end(self, pod: int) -> None:
        gone = self._pods.pop(pod)
        self._machines.release(gone.place, gone.gpus)

    def _evict(self, now: datetime) -> None:
        """Evict gangs, as an urgent job would. Their jobs start again."""
        running = Job.objects.filter(phase=JobPhase.RUNNING).order_by("pk")
        chosen = self._work.evicted(list(running.values_list("pk", flat=True)))
        pods: Mapping[int, list[Pod]] = defaultdict(list)
        for pod in Pod.objects.filter(job__in=chosen, phase=PodPhase.RUNNING, stopping=False).order_by("pk"):
            pods[pod.job_id].append(pod)
        found = list(running.filter(pk__in=pods))
        why = EvictionReason("preempt")
        decisions = [
            JobDecision(job.pk, job.version, job.revision, evictions={pod.pk: why for pod in pods[job.pk]})
            for job in found
        ]
        jobs.commit(self._cluster.pk, self._world.epoch, decisions, now=now)
        for job in found:
            gone = [
                Sighting(pod.task, pod.index, pod.attempt, PodPhase.FAILED, now, reason="Evicted", exit_code=137)
                for pod in pods[job.pk]
            ]
            self._record(job.uid, gone, now)
            for pod in pods[job.pk]:
                self._end(pod.pk)

    def _measure(self, now: datetime) -> None:
        """Record one sample of each running pod."""
        at, seconds = now - timedelta(seconds=5), (now - self._begin).total_seconds()
        readings = [
            Reading(pod, at, 4 * seconds, 2**33, gpus_busy=None if one.busy is None else one.gpus * one.busy / 1000)
            for pod, one in self._pods.items()
            if one.is_started
        ]
        usage.record(self._cluster.pk, self._world.epoch, readings)

    def _roll_up(self, minute: int, now: datetime) -> None:
        if minute % _HOUR_MINUTES == 1:
            self.costs.append(HourCost())
        shares.observe(self._cluster, self._world.epoch, self._size, self._lacking, now=now)
        with self._meter as spent:
            measures.roll_up(now=now)
            measures.count_jobs(now=now)
            queue_services.roll_up_queues(now=now)
        cost = self.costs[-1]
        cost.process += spent.process
        cost.database += spent.database
        cost.waiting = StaleHour.objects.count()


def _address(_replica: Replica) -> str:
    return "127.1.0.1"
