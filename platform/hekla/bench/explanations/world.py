"""A cluster whose jobs are rows that are never saved, with the engine that decides about them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

from hekla.apps.accounts.models import User
from hekla.apps.clusters.models import Cluster
from hekla.apps.jobs.models import Job
from hekla.apps.jobs.services.submission import new_row
from hekla.apps.priorities.selectors import RequestedPriority
from hekla.apps.queues.models import Queue
from hekla.apps.tenancy.models import Tenant
from hekla.domain.jobspec import JobSpec
from hekla.domain.phases import JobPhase
from hekla.domain.resources import Resources
from hekla.engine.model import ClusterState, NodeSpec, QueueSpec, TenantQuota
from hekla.engine.policy import DEFAULT_POLICY_TEXT, SchedulerPolicy, parse
from hekla.engine.scheduler_cache import SchedulerCache
from hekla.scheduling import reasons
from hekla.scheduling.snapshot import Snapshot
from hekla.simulation.simulator import Simulator

MONDAY = datetime(2030, 1, 7, tzinfo=UTC)
"""Where simulated time begins."""
DEFAULT = "default"


def nodes(*sizes: Mapping[str, Any]) -> tuple[NodeSpec, ...]:
    """Nodes n0, n1, …: each with amounts, and `labels`, `taints` or `unschedulable`."""
    found = []
    for at, size in enumerate(sizes):
        more = {name: size[name] for name in ("labels", "taints", "unschedulable") if name in size}
        amounts = {"cpu": "4", "memory": "8Gi", "pods": "20"} | {n: size[n] for n in size if n not in more}
        found.append(NodeSpec(f"n{at}", Resources.parse(amounts), **more))
    return tuple(found)


def job_spec(name: str = "draft", replicas: int = 1, **more: Any) -> JobSpec:  # noqa: ANN401
    """A job of equal pods. Arguments that are not fields of the job are fields of its task, or amounts of a pod."""
    own = {key: more.pop(key) for key in [*more] if key in JobSpec.model_fields}
    resources = {"cpu": str(more.pop("cpu", "1"))} | more.pop("resources", {})
    task = {"name": "worker", "replicas": replicas, "command": ["train"], "resources": resources}
    return JobSpec.parse({"name": name, "tasks": [task | more], **own})


@dataclass
class ExplainedCluster:
    """A cluster in memory. `now` advances with `end`; `rows`: all jobs that were submitted, by uid."""

    nodes: tuple[NodeSpec, ...]
    queues: tuple[QueueSpec, ...] = (QueueSpec(DEFAULT),)
    policy_text: str = DEFAULT_POLICY_TEXT
    quotas: tuple[TenantQuota, ...] = ()
    hyper_nodes: tuple[Any, ...] = ()
    rows: dict[str, Job] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._numbers = count(1)
        self._cluster = Cluster(pk=1, name="simulated", kind="simulated")
        self._queues = {one.name: self._queue(number, one) for number, one in enumerate(self.queues, 1)}
        self._tenants, self._people = {1: Tenant(pk=1, slug="lab", name="Lab")}, {1: User(pk=1, username="alice")}
        self.policy: SchedulerPolicy = parse(self.policy_text)
        self.course = self._simulator(self.queues, self.nodes)

    def _queue(self, number: int, one: QueueSpec) -> Queue:
        return Queue(pk=number, name=one.name, cluster=self._cluster)

    def _simulator(self, queues: tuple[QueueSpec, ...], machines: tuple[NodeSpec, ...]) -> Simulator:
        state = ClusterState(machines, queues, (), tenant_quotas=self.quotas, hyper_nodes=self.hyper_nodes)
        return Simulator(Snapshot(state, {}, (), {}), self.policy, SchedulerCache(), MONDAY)

    def row(self, spec: JobSpec, *, queue: str = DEFAULT, tenant: int = 1, owner: int = 1, priority: int = 0) -> Job:
        """A new row with a number of its own."""
        whose = self._tenants.setdefault(tenant, Tenant(pk=tenant, slug=f"t{tenant}", name=f"Tenant {tenant}"))
        person = self._people.setdefault(owner, User(pk=owner, username=f"user-{owner}"))
        requested = RequestedPriority(priority)
        place = self._queues[queue]
        made = new_row(spec, requested, tenant=whose, queue=place, user=person, at=self.course.now)
        made.pk, made.spec_in_hand = next(self._numbers), spec
        return made

    def submit(self, spec: JobSpec, **whose: Any) -> Job:  # noqa: ANN401
        """Submit a job, and let the engine decide."""
        row = self.row(spec, **whose)
        self.rows[str(row.pk)] = row
        self.course.put(row)
        self.course.settle()
        return row

    def end(self, *jobs: Job, at: datetime | None = None) -> None:
        """End these jobs, and let the engine decide."""
        self.course.end([str(job.pk) for job in jobs], at or self.course.now + timedelta(seconds=1))
        self.course.settle()

    def has_started(self, job: Job) -> bool:
        """Whether enough of its pods have a node."""
        return self.course.has_started(str(job.pk))

    def explain(self, job: Job) -> Job:
        """Write on the row why the job waits, as the controller does."""
        found = self.course.decided.reasons.get(str(job.pk), ())
        job.phase = JobPhase.PENDING
        job.waiting = [reasons.as_data(one) for one in reasons.distinct(found)]
        return job

    def rebuilt(self, without: Sequence[str], *, queues: tuple[QueueSpec, ...] = ()) -> "ExplainedCluster":
        """A new cluster with the same jobs placed as here, but for those in `without`, and with a new engine's cache.

        `queues`: as they are now, if they have changed.
        """
        other = ExplainedCluster(self.nodes, queues or self.queues, self.policy_text, self.quotas, self.hyper_nodes)
        other._numbers, other._tenants, other._people = self._numbers, self._tenants, self._people
        other.rows = {uid: row for uid, row in self.rows.items() if uid not in without}
        left = tuple(job for job in self.course.jobs() if job.uid not in without)
        state = ClusterState(self.nodes, other.queues, left, tenant_quotas=self.quotas, hyper_nodes=self.hyper_nodes)
        rows = {uid: row for uid, row in other.rows.items() if self.course.row(uid)}
        other.course = Simulator(Snapshot(state, rows, (), {}), self.policy, SchedulerCache(), self.course.now)
        return other
