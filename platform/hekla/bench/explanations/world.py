"""A cluster whose jobs are rows that are never saved, with the engine that decides about them."""

from collections.abc import Mapping
from copy import copy
from dataclasses import replace
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
from hekla.domain.resources import Resources
from hekla.engine.model import ClusterState, NodeSpec, PodGroupSpec, QueueSpec
from hekla.engine.policy import DEFAULT_POLICY_TEXT, parse
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


def cluster(*sizes: Mapping[str, Any], queues: tuple[QueueSpec, ...] = (), **more: Any) -> ClusterState:  # noqa: ANN401
    """An empty cluster of nodes of these sizes, with one queue by default."""
    return ClusterState(nodes(*sizes), queues or (QueueSpec(DEFAULT),), (), **more)


def job_spec(name: str = "draft", replicas: int = 1, **more: Any) -> JobSpec:  # noqa: ANN401
    """A job of equal pods. Arguments that are not fields of the job are fields of its task, or amounts of a pod."""
    own = {key: more.pop(key) for key in [*more] if key in JobSpec.model_fields}
    resources = {"cpu": str(more.pop("cpu", "1"))} | more.pop("resources", {})
    task = {"name": "worker", "replicas": replicas, "command": ["train"], "resources": resources}
    return JobSpec.parse({"name": name, "tasks": [task | more], **own})


def _renumbered(job: PodGroupSpec) -> PodGroupSpec:
    """The job with uids of pods that no simulation gives to a new pod."""
    return replace(job, pods=tuple(replace(pod, uid=f"{job.uid}.{at}") for at, pod in enumerate(job.pods)))


class ExplainedCluster:
    """A cluster in memory. `course`: its simulation, whose time advances when jobs end; `rows`: all jobs, by uid."""

    def __init__(self, empty: ClusterState, policy_text: str = DEFAULT_POLICY_TEXT, now: datetime = MONDAY) -> None:
        self.empty, self.policy = empty, parse(policy_text)
        self.rows: dict[str, Job] = {}
        self._numbers = count(1)
        cluster = Cluster(pk=1, name="simulated", kind="simulated")
        self._queues = {
            one.name: Queue(pk=number, name=one.name, cluster=cluster) for number, one in enumerate(empty.queues, 1)
        }
        self._tenants, self._people = dict[int, Tenant](), dict[int, User]()
        self.course = self._simulator(empty, {}, now)

    def _simulator(self, state: ClusterState, rows: dict[str, Job], now: datetime) -> Simulator:
        return Simulator(Snapshot(state, rows, (), {}), self.policy, SchedulerCache(), now)

    def row(
        self,
        spec: JobSpec,
        *,
        tenant: int = 1,
        owner: int = 1,
        priority: int = 0,
        never_preempts: bool = False,
    ) -> Job:
        """A new row with a number of its own, in the queue that the job names."""
        whose = self._tenants.setdefault(tenant, Tenant(pk=tenant, slug=f"t{tenant}", name=f"Tenant {tenant}"))
        person = self._people.setdefault(owner, User(pk=owner, username=f"user-{owner}"))
        requested = RequestedPriority(priority, never_preempts=never_preempts)
        queue = self._queues[spec.queue or DEFAULT]
        made = new_row(spec, requested, tenant=whose, queue=queue, user=person, at=self.course.now)
        made.pk, made.spec_in_hand = next(self._numbers), spec
        return made

    def submit(self, spec: JobSpec, **whose: Any) -> Job:  # noqa: ANN401
        """Submit a job, and let the engine decide. `whose`: as for `row`."""
        row = self.row(spec, **whose)
        self.put(row)
        return row

    def put(self, row: Job) -> None:
        """Add a job or replace it by one of another size, and let the engine decide."""
        self.rows[str(row.pk)] = row
        self.course.put(row)
        self.course.settle()

    def end(self, *jobs: Job, at: datetime | None = None) -> None:
        """End these jobs, and let the engine decide."""
        self.course.end([str(job.pk) for job in jobs], at or self.course.now + timedelta(seconds=1))
        self.course.settle()

    def has_started(self, job: Job) -> bool:
        """Whether enough of its pods have a node."""
        return self.course.has_started(str(job.pk))

    def explain(self, job: Job) -> Job:
        """The job, with the reasons on its row, as the controller writes them."""
        found = self.course.decided.reasons.get(str(job.pk), ())
        job.waiting = [reasons.as_data(one) for one in reasons.distinct(found)]
        return job

    def rebuilt(self, *without: Job, empty: ClusterState | None = None) -> "ExplainedCluster":
        """Another cluster with the same jobs in the same places, but for those in `without`, for a fresh engine.

        `empty`: its nodes, queues and quotas, if they have changed.
        """
        other = copy(self)
        other.empty = empty or self.empty
        gone = {str(job.pk) for job in without}
        other.rows = {uid: row for uid, row in self.rows.items() if uid not in gone}
        state = replace(other.empty, jobs=tuple(_renumbered(job) for job in self.course.jobs() if job.uid not in gone))
        known = {uid: row for uid, row in other.rows.items() if self.course.row(uid)}
        other.course = other._simulator(state, known, self.course.now)
        return other
