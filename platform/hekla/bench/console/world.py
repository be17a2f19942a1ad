"""Fills a console as if many teams had used it for three months.

Services create tenants, queues and the cluster; `activity` adds the rest. Jobs are copied into their table, and SQL
creates pods and events from them, because 100,000 submissions would take an hour. There are events of all jobs, but
events of pods only for the newest jobs.
"""

import random
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import connection, transaction
from psycopg.types.json import Jsonb

from hekla.apps.accounts.models import User
from hekla.apps.clusters import services as clusters
from hekla.apps.clusters.models import Cluster, Node
from hekla.apps.event_log.services import PLATFORM
from hekla.apps.jobs.models import Job
from hekla.apps.queues import services as queues
from hekla.apps.queues.models import Queue
from hekla.apps.tenancy import services as tenancy
from hekla.apps.tenancy.models import Membership, Tenant
from hekla.bench.console import activity
from hekla.bench.console.size import Size
from hekla.domain import events
from hekla.domain.jobspec import JobSpec
from hekla.domain.phases import JobPhase, PodPhase
from hekla.lib import clock

ADMIN = "bench-admin"
_DAYS = 90
_MODELS = ("a100", "h100")
_NODE = {"cpu": "128", "memory": "1Ti", "nvidia.com/gpu": "8", "pods": "250"}
_WORDS = ("resnet", "llama", "bert", "whisper", "diffusion", "ranker", "tracker", "tuner", "embed", "digits")
_KINDS = ("training", "training", "training", "inference", "data")
_SIZES = (1, 1, 2, 2, 4, 4, 8, 8, 16, 54)  # sizes of jobs, each for a tenth of the jobs: 10 pods on average
_LIVING = {"running": 50, "pending": 42, "restarting": 4, "completing": 4}
_OVER = {"completed": 80, "failed": 13, "aborted": 5, "terminated": 2}
_LIVING_SHARE = 0.02
_REASON = {
    "cause": "capacity", "action": "allocate", "plugin": "", "code": "cluster_is_full", "need": {"cpu": "6"},
    "have": {}, "tasks": 1, "nodes": {"insufficient cpu": 990}, "ever": True,
    "most": {"cpu": "128000"}, "free": {"cpu": "12"}, "fitting": 0, "usable": 990,
}  # fmt: skip
_COLUMNS = (
    *("uid", "name", "tenant_id", "queue_id", "cluster_id", "owner_id", "spec", "kind", "priority", "replicas"),
    "never_preempts",
    *("phase", "gang_phase", "version", "revision", "retry_count", "reason", "message", "message_facts", "waiting"),
    *("reserved_slots", "submitted_at", "started_at", "finished_at"),
)


def fill(size: Size) -> None:
    """Create all rows, and analyze the tables."""
    now, chance = clock.now(), random.Random(7)  # noqa: S311  (the same console each time, not a secret)
    with transaction.atomic():
        cluster = _machines(size, now)
        members = _people(size, now)
        places = _queues(size, cluster, members, now)
        _copy_jobs(_jobs(size, members, places, now, chance))
        _run_sql(_PODS, {"nodes": size.nodes})
        _run_sql(_EVENTS, _PAYLOADS | {"newest": max(20, size.jobs // 50)})
    activity.add(members, places, now)
    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE")


def _machines(size: Size, now: datetime) -> Cluster:
    cluster = clusters.create(name="bench", kind="simulated", config={}, actor=PLATFORM, now=now)
    Node.objects.bulk_create(_node(cluster, number) for number in range(size.nodes))
    return cluster


def _node(cluster: Cluster, number: int) -> Node:
    labels = {"rack": f"r{number // 20}", "gpu": _MODELS[number % len(_MODELS)]}
    return Node(cluster=cluster, name=f"node-{number}", allocatable=_NODE, labels=labels)


def _people(size: Size, now: datetime) -> list[tuple[Tenant, list[User]]]:
    """Create a platform admin, and each tenant with its members, the first of them its admin."""
    User.objects.create(username=ADMIN, password="!", platform_role="admin", date_joined=now)  # noqa: S106  (unusable)
    found = []
    for number in range(size.tenants):
        tenant = tenancy.create(slug=f"team-{number}", name=f"Team {number}", actor=PLATFORM, now=now)
        names = [f"person-{number}-{place}" for place in range(size.people_per_tenant)]
        people = User.objects.bulk_create(User(username=name, password="!", date_joined=now) for name in names)  # noqa: S106
        Membership.objects.bulk_create(
            Membership(tenant=tenant, user=user, role="member" if place else "admin", since=now)
            for place, user in enumerate(people)
        )
        found.append((tenant, people))
    return found


def _queues(size: Size, cluster: Cluster, members: list[tuple[Tenant, list[User]]], now: datetime) -> dict[int, Queue]:
    """The queue of each tenant, by the tenant's id."""
    found: dict[int, Queue] = {}
    for number in range(size.queues):
        theirs = [tenant for tenant, _people in members[number :: size.queues]]
        queue = queues.create(cluster=cluster, name=f"queue-{number}", tenants=theirs, actor=PLATFORM, now=now)
        found |= {tenant.pk: queue for tenant in theirs}
    return found


def _jobs(
    size: Size, members: list[tuple[Tenant, list[User]]], places: dict[int, Queue], now: datetime, chance: random.Random
) -> Iterator[list[Any]]:
    """The rows of the jobs, oldest first. Some tenants submit far more than others."""
    shapes = {count: _shape(max(1, count * size.pods_per_job // 10)) for count in _SIZES}
    weights = [1 / (place + 1) ** 0.7 for place in range(size.tenants)]
    step = timedelta(days=_DAYS) / size.jobs
    for number in range(size.jobs):
        tenant, people = chance.choices(members, weights)[0]
        queue, spec = places[tenant.pk], shapes[chance.choice(_SIZES)]
        name, kind = f"{chance.choice(_WORDS)}-{number}", chance.choice(_KINDS)
        at = now - step * (size.jobs - number)
        is_alive = number >= size.jobs * (1 - 2 * _LIVING_SHARE) and chance.random() < 0.5  # noqa: PLR2004
        phase = _one_of(_LIVING if is_alive else _OVER, chance)
        began = None if phase == "pending" else at + timedelta(seconds=chance.uniform(1, 600))
        ended = began + timedelta(seconds=chance.uniform(10, 40_000)) if began and not is_alive else None
        document = spec.model_copy(update={"name": name, "queue": queue.name, "kind": kind}).document()
        replicas = spec.replicas
        yield [
            *(UUID(int=chance.getrandbits(128), version=4), name, tenant.pk, queue.pk, queue.cluster_id),
            *(chance.choice(people).pk, Jsonb(document), kind, chance.choice((0, 0, 0, 10, 100)), replicas),
            False,
            *(phase, _gang_phase(phase), 1, 1, 0, "PodFailed" if phase == "failed" else "", "", Jsonb([])),
            *(Jsonb([_REASON] if phase == "pending" else []), Jsonb([]), at, began, min(ended, now) if ended else None),
        ]


def _shape(pods: int) -> JobSpec:
    """A job spec with this many pods. With 8 or more, an eighth of them are parameter servers."""
    servers = pods // 8
    tasks = [{"name": "worker", "replicas": pods - servers, "command": ["python", "train.py", "--epochs", "90"]}]
    if servers:
        tasks.append({"name": "ps", "replicas": servers, "command": ["python", "serve.py"]})
    resources = {"cpu": "6", "memory": "8Gi"}  # running jobs of the default sizes nearly fill the default nodes
    return JobSpec.parse({"name": "shape", "tasks": [task | {"resources": resources} for task in tasks]})


def _one_of(shares: dict[str, int], chance: random.Random) -> str:
    return chance.choices(list(shares), list(shares.values()))[0]


def _gang_phase(phase: str) -> str:
    return {"pending": "pending", "running": "running", "completing": "running"}.get(phase, "completed")


def _copy_jobs(rows: Iterator[list[Any]]) -> None:
    with connection.cursor() as cursor, cursor.copy(f"COPY jobs_job ({', '.join(_COLUMNS)}) FROM STDIN") as copy:
        for row in rows:
            copy.write_row(row)


def _run_sql(statement: str, facts: dict[str, Any]) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement, facts)


_PAYLOADS = {
    "job_phase": events.JobPhaseChanged(old=JobPhase.PENDING, new=JobPhase.RUNNING).model_dump_json(),
    "pod_phase": events.PodPhaseChanged(
        task="", index=0, attempt=1, old=PodPhase.BOUND, new=PodPhase.RUNNING
    ).model_dump_json(exclude={"task", "index", "attempt"}),
}
_PODS = """
INSERT INTO jobs_pod (job_id, task, index, attempt, version, slot, address, phase, node, stopping, evicted, stop_reason,
                      reason, message, exit_code, created_at, bound_at, started_at, finished_at)
SELECT job.id, task.name, place, 1, 1, nextval('jobs_slot'), '127.1.0.1', pod.phase,
       CASE WHEN pod.phase = 'pending' THEN '' ELSE 'node-' || ((job.id * 7 + place) %% %(nodes)s) END,
       false, false, '', CASE WHEN pod.phase = 'failed' THEN 'Error' ELSE '' END, '',
       CASE pod.phase WHEN 'failed' THEN 1 WHEN 'succeeded' THEN 0 END,
       job.submitted_at, job.started_at, job.started_at, job.finished_at
FROM jobs_job job
CROSS JOIN LATERAL jsonb_to_recordset(job.spec -> 'tasks') AS task(name text, replicas int)
CROSS JOIN LATERAL generate_series(0, coalesce(task.replicas, 1) - 1) AS place
CROSS JOIN LATERAL (SELECT CASE
    WHEN job.phase IN ('pending', 'restarting') THEN 'pending'
    WHEN job.phase IN ('running', 'completing') THEN 'running'
    WHEN job.phase = 'completed' OR place > 0 THEN 'succeeded'
    ELSE 'failed' END AS phase) AS pod
ORDER BY job.id
"""
_EVENTS = """
WITH logged AS (
    SELECT job.submitted_at AS at, 'JobSubmitted' AS kind, job.id AS job_id, job.owner_id AS actor_id,
           jsonb_build_object('name', job.name, 'queue', queue.name, 'job_kind', job.kind, 'replicas', job.replicas)
           AS payload
    FROM jobs_job job JOIN queues_queue queue ON queue.id = job.queue_id
    UNION ALL
    SELECT started_at, 'JobPhaseChanged', id, NULL,
           %(job_phase)s::jsonb || jsonb_build_object('old', 'pending', 'new', 'running')
    FROM jobs_job WHERE started_at IS NOT NULL
    UNION ALL
    SELECT finished_at, 'JobPhaseChanged', id, NULL,
           %(job_phase)s::jsonb || jsonb_build_object('old', 'running', 'new', phase)
    FROM jobs_job WHERE finished_at IS NOT NULL
    UNION ALL
    SELECT coalesce(bound_at, created_at), step.kind, job_id, NULL,
           jsonb_build_object('task', task, 'index', index, 'attempt', 1) || step.more
    FROM jobs_pod pod
    CROSS JOIN LATERAL (VALUES
        ('PodCreated', jsonb_build_object('address', address)),
        ('PodBound', jsonb_build_object('node', node)),
        ('PodPhaseChanged', %(pod_phase)s::jsonb || jsonb_build_object('old', 'bound', 'new', 'running', 'node', node))
    ) AS step(kind, more)
    WHERE pod.phase <> 'pending' AND job_id > (SELECT max(id) FROM jobs_job) - %(newest)s
), numbered AS (
    INSERT INTO event_log_loggedevent (id, at, kind, subject, tenant_id, actor_id, actor_name, topics, payload)
    SELECT (SELECT last FROM event_log_numbering) + row_number() OVER (ORDER BY logged.at, logged.kind), logged.at,
           logged.kind,
           'job:' || job.uid, job.tenant_id, logged.actor_id, CASE WHEN logged.actor_id IS NULL THEN 'controller'
           ELSE 'person' END, ARRAY['job:' || job.uid, 'tenant:' || job.tenant_id, 'queue:' || job.queue_id],
           logged.payload
    FROM logged JOIN jobs_job job ON job.id = logged.job_id
    RETURNING 1
)
UPDATE event_log_numbering SET last = last + (SELECT count(*) FROM numbered)
"""


def some_jobs(count: int, **which: Any) -> list[Job]:  # noqa: ANN401  (filter arguments)
    """`count` jobs, spread evenly over the whole time."""
    found = Job.objects.filter(**which).order_by("id").values_list("pk", flat=True)
    chosen = found[:: max(1, len(found) // count)]
    return list(Job.objects.filter(pk__in=list(chosen)[:count]))
