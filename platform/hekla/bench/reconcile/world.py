"""A simulated cluster full of running pods, in rows and in the journal of its backend, and the changes of its pods.

Services create the cluster, people and queues. Rows of jobs and pods are inserted, and plans of pods are appended to
the journal, as if they had been running for an hour.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice
from pathlib import Path

from django.conf import settings
from django.db import connection, transaction
from django.db.models import QuerySet

from hekla.apps.accounts.models import User
from hekla.apps.clusters import services as clusters
from hekla.apps.clusters.models import Cluster, Node
from hekla.apps.event_log.services import PLATFORM
from hekla.apps.jobs import services
from hekla.apps.jobs.models import Job, Pod
from hekla.apps.queues import services as queues
from hekla.apps.queues.models import Queue
from hekla.apps.tenancy import services as tenancy
from hekla.apps.tenancy.models import Membership, Tenant
from hekla.backends.simulated.journal import Entry, SimulationJournal
from hekla.bench.reconcile.size import POD_COUNT, ClusterSize
from hekla.controller.backends import backend_of
from hekla.domain.jobspec import JobSpec
from hekla.domain.phases import GangPhase, JobPhase
from hekla.lib import clock

_CLUSTER, _TENANTS, _QUEUES = "bench", 10, 5
_LASTING = 1e9
"""Seconds for which a pod runs unless the measurement ends it."""
_NODE = {"cpu": "64", "memory": "256Gi"}
_REQUEST = {"cpu": "4", "memory": "8Gi"}
_AT_ONCE = 2000
_PODS = """
INSERT INTO jobs_pod (job_id, task, index, attempt, version, slot, address, phase, node, stopping, evicted, stop_reason,
                      reason, message, created_at, bound_at, started_at)
SELECT job.id, 'worker', place, 1, 1, nextval('jobs_slot'), '10.64.0.1', 'running',
       'node-' || ((job.number * %(each)s + place) %% %(nodes)s), false, false, '', '', '',
       job.submitted_at, job.started_at, job.started_at
FROM (SELECT id, submitted_at, started_at, row_number() OVER (ORDER BY id) AS number FROM jobs_job) AS job
CROSS JOIN generate_series(0, %(each)s - 1) AS place
ORDER BY job.id, place
"""


def fill(size: ClusterSize) -> None:
    """Create all rows and the journal, and analyze the tables."""
    now = clock.now()
    with transaction.atomic():
        cluster = _create_cluster(size, now)
        _create_nodes(cluster)
        tenants, owner = _create_people(now)
        known = [queues.create(cluster=cluster, name=name, actor=PLATFORM, now=now) for name in _queue_names()]
        began = now - timedelta(hours=1)
        rows = (
            _running_job(number, known[number % _QUEUES], tenants[number % _TENANTS], owner, began)
            for number in range(size.jobs)
        )
        Job.objects.bulk_create(rows, batch_size=_AT_ONCE)
        with connection.cursor() as cursor:
            cursor.execute(_PODS, {"each": POD_COUNT, "nodes": size.nodes})
    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE jobs_job, jobs_pod, clusters_node")
    _append(_plans(Job.objects.all(), ends_at=now.timestamp() + _LASTING))


@dataclass
class BenchWorld:
    """The cluster during a measurement. `ended`: how many of its first jobs have ended."""

    size: ClusterSize
    cluster: Cluster
    ended: int = 0
    submitted: int = 0

    @classmethod
    def load(cls, size: ClusterSize) -> "BenchWorld":
        """The cluster that `fill` created."""
        return cls(size, Cluster.objects.get(name=_CLUSTER))

    def end_pods(self) -> None:
        """End the pods of the oldest running jobs, at the backend only."""
        jobs = Job.objects.order_by("pk")[self.ended : self.ended + self.size.changed_jobs]
        _append(_plans(jobs, ends_at=clock.now().timestamp()))
        self.ended += self.size.changed_jobs

    def submit_jobs(self) -> None:
        """Submit as many jobs as `end_pods` ends."""
        numbers = range(self.submitted, self.submitted + self.size.changed_jobs)
        specs = [_spec(f"new-{number}", _queue_names()[number % _QUEUES]) for number in numbers]
        tenant, owner = Tenant.objects.order_by("pk")[0], User.objects.get()
        services.submit_many(specs=specs, tenant=tenant, user=owner, now=clock.now())
        self.submitted += self.size.changed_jobs

    def change_nodes(self) -> None:
        """Change rows of nodes, so that the report of the backend is news."""
        some = Node.objects.order_by("pk").values("pk")[: self.size.changed_nodes]
        Node.objects.filter(pk__in=list(some.values_list("pk", flat=True))).update(is_ready=False)


def _create_cluster(size: ClusterSize, now: datetime) -> Cluster:
    nodes = {"name": "node", "count": size.nodes, "allocatable": _NODE, "usage": {"cpu": "1", "memory": "4Gi"}}
    times = {"prepare_seconds": {"min": 0, "max": 0}, "run_seconds": {"min": _LASTING, "max": _LASTING}}
    config = {"nodes": [nodes], "speed": 1, "pod_usage": 0.5, **times}
    return clusters.create(name=_CLUSTER, kind="simulated", config=config, actor=PLATFORM, now=now)


def _create_nodes(cluster: Cluster) -> None:
    """The nodes as the controller records them."""
    rows = (
        Node(cluster=cluster, name=one.name, allocatable=one.allocatable.quantities(), labels=dict(one.labels))
        for one in backend_of(cluster).nodes()
    )
    Node.objects.bulk_create(rows, batch_size=_AT_ONCE)


def _create_people(now: datetime) -> tuple[list[Tenant], User]:
    owner = User.objects.create(username="bench", password="!", date_joined=now)  # noqa: S106  (unusable)
    tenants = [
        tenancy.create(slug=f"team-{number}", name=f"Team {number}", actor=PLATFORM, now=now)
        for number in range(_TENANTS)
    ]
    Membership.objects.bulk_create(Membership(tenant=one, user=owner, role="member", since=now) for one in tenants)
    return tenants, owner


def _queue_names() -> list[str]:
    return [f"queue-{number}" for number in range(_QUEUES)]


def _spec(name: str, queue: str) -> JobSpec:
    task = {"name": "worker", "replicas": POD_COUNT, "command": ["python", "train.py"], "resources": _REQUEST}
    return JobSpec.parse({"name": name, "queue": queue, "tasks": [task]})


def _running_job(number: int, queue: Queue, tenant: Tenant, owner: User, began: datetime) -> Job:
    spec = _spec(f"job-{number}", queue.name)
    return Job(
        name=spec.name,
        tenant=tenant,
        queue=queue,
        cluster=queue.cluster,
        owner=owner,
        spec=spec.document(),
        kind=spec.kind,
        replicas=POD_COUNT,
        phase=JobPhase.RUNNING,
        gang_phase=GangPhase.RUNNING,
        submitted_at=began,
        started_at=began,
    )


def _plans(jobs: QuerySet[Job], *, ends_at: float) -> Iterator[Entry]:
    """The plans of the pods of these jobs, as the backend writes them."""
    columns = ("job__uid", "task", "index", "attempt", "node", "address", "started_at")
    found = Pod.objects.filter(job__in=jobs.values("pk")).order_by("pk").values_list(*columns)
    for uid, task, index, attempt, node, address, started_at in found.iterator(chunk_size=_AT_ONCE):
        yield {
            "plan": {
                "key": [uid.hex, task, index, attempt],
                "node": node,
                "address": address,
                "grace_seconds": 30.0,
                "started_at": started_at.timestamp(),
                "runs_at": started_at.timestamp(),
                "ends_at": ends_at,
                "planned_end_at": ends_at,
                "exit_code": 0,
            }
        }


def _append(entries: Iterator[Entry]) -> None:
    """Append to the journal, as another process does."""
    journal = SimulationJournal(Path(settings.HEKLA_HOME) / "simulated" / _CLUSTER / "journal.jsonl")
    with journal.writing():
        while some := list(islice(entries, _AT_ONCE)):
            journal.append(some)
