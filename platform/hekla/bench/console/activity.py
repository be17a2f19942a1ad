"""What people and machines leave beside jobs: flows, batches with metrics, notifications, measured use and the like.

Services create what is small. Rows that there are many of are inserted by SQL, from the jobs and pods that exist.
"""

import math
from datetime import datetime, timedelta
from typing import Any

from django.db import connection

from hekla.apps.accounts.models import User
from hekla.apps.batches import services as batches
from hekla.apps.batches.models import Batch, BatchJob
from hekla.apps.clusters.models import Node, NodeUsageRow
from hekla.apps.event_log.services import PLATFORM
from hekla.apps.flows import services as flows
from hekla.apps.gallery import services as gallery
from hekla.apps.job_metrics.models import MetricLog
from hekla.apps.jobs.models import Job, Pod
from hekla.apps.presets import services as presets
from hekla.apps.queues.models import Queue
from hekla.apps.quotas import services as quotas
from hekla.apps.quotas.models import Quota
from hekla.apps.schedules import services as schedules
from hekla.apps.tenancy.models import Tenant
from hekla.domain.flows import FlowSpec
from hekla.domain.jobspec import JobSpec
from hekla.domain.metric_series import MetricSeries
from hekla.domain.schedules import ScheduleSpec
from hekla.domain.sweeps import SweepSpec

_FEW = 40
_STEPS = 200
_FIRST_SLOT = 10**9
_EPOCHS = {"lr": [str(place) for place in range(20)], "batch": ["16", "32", "64", "128", "256"]}
_COMMAND = ["echo", "{{ lr }} {{ batch }}"]


def add(members: list[tuple[Tenant, list[User]]], places: dict[int, Queue], now: datetime) -> None:
    """Add everything. `members`: the people of each tenant, its admin first; `places`: its queue by the tenant's id."""
    for tenant, people in members[:_FEW]:
        _work_of_tenant(tenant, people[0], places[tenant.pk], now)
    _compare(Batch.objects.get(tenant=members[0][0], name="grid"), now)
    _usage_of_nodes(now)
    with connection.cursor() as cursor:
        for statement in (_NOTIFICATIONS, _SAMPLES):
            cursor.execute(statement, {"now": now})


def _work_of_tenant(tenant: Tenant, user: User, queue: Queue, now: datetime) -> None:
    facts: dict[str, Any] = {"tenant": tenant, "user": user, "now": now}
    job = {"name": "step", "queue": queue.name, "tasks": [{"name": "main", "command": ["true"]}]}
    steps = [{"name": name, "job": job} for name in ("load", "train", "judge")]
    flows.start(spec=FlowSpec.parse({"name": "nightly", "steps": steps}), **facts)
    swept = {**job, "tasks": [{"name": "main", "command": _COMMAND}]}
    for name, parameters in (("sweep", {"lr": _EPOCHS["lr"], "batch": ["32"]}), ("grid", _EPOCHS)):
        sweep = {"name": name, "parameters": parameters, "job": swept}
        if name == "sweep" or tenant.slug == "team-0":
            batches.submit_sweep(spec=SweepSpec.parse(sweep), **facts)
    schedules.create(spec=ScheduleSpec.parse({"name": "daily", "cron": "@daily", "job": job}), **facts)
    presets.save(name="usual", spec=JobSpec.parse(job), **facts)
    title, about = f"Training of {tenant.name}", "Trains the usual model."
    gallery.publish(title=title, description=about, spec=JobSpec.parse(job), fields=[], **facts)
    bounds = {"jobs": 100_000, "resources": {"cpu": "1000000"}}
    quotas.bound(tenant=tenant, of=Quota.Of.TENANT, user=None, bounds=bounds, actor=PLATFORM, now=now)


def _compare(batch: Batch, now: datetime) -> None:
    """Let the jobs of the batch be completed, with the metrics that they printed."""
    members = list(BatchJob.objects.filter(batch=batch).select_related("job").order_by("number"))
    jobs = Job.objects.filter(pk__in=[member.job_id for member in members])
    jobs.update(phase="completed", gang_phase="completed", waiting=[], started_at=now, finished_at=now)
    facts = {"task": "main", "index": 0, "attempt": 1, "version": 1, "address": "127.1.0.1", "phase": "succeeded"}
    times = {"created_at": now, "bound_at": now, "started_at": now, "finished_at": now, "exit_code": 0}
    pods = Pod.objects.bulk_create(
        Pod(job=member.job, slot=_FIRST_SLOT + place, node="node-1", **facts, **times)
        for place, member in enumerate(members)
    )
    MetricLog.objects.bulk_create(_log(pod, member, now) for pod, member in zip(pods, members, strict=True))
    Batch.objects.filter(pk=batch.pk).update(ended_at=now)


def _log(pod: Pod, member: BatchJob, now: datetime) -> MetricLog:
    summary, points = {}, {}
    for name, start in (("loss", 2.0), ("accuracy", 0.1)):
        series = MetricSeries()
        for step in range(_STEPS):
            series.add(float(step), start * math.exp(-step / (20 + member.number)))
        summary[name], points[name] = series.summary(), series.points()
    return MetricLog(pod=pod, job=member.job, summary=summary, points=points, is_complete=True, due_at=now)


def _usage_of_nodes(now: datetime) -> None:
    """What was measured at the nodes, dated so that it is still recent when the pages are opened."""
    facts = {"at": now + timedelta(hours=1), "cpu": 60.0, "memory": 40.0, "whole_cpu": 128_000, "whole_memory": 2**40}
    card = {"resource": "nvidia.com/gpu", "busy": 70, "memory_mib": 30_000}
    cards = [{**card, "index": place} for place in range(8)]
    NodeUsageRow.objects.bulk_create(NodeUsageRow(node=node, cards=cards, **facts) for node in Node.objects.all())


_NOTIFICATIONS = """
INSERT INTO notifications_notification
       (user_id, key, moment, at, job_uid, job_name, tenant_id, facts, in_page, read_at)
SELECT owner_id, 'ended:' || uid, CASE phase WHEN 'failed' THEN 'failed' ELSE 'ended' END, finished_at, uid, name,
       tenant_id, jsonb_build_object('phase', phase, 'message', '', 'message_facts', '[]'::jsonb), true,
       CASE WHEN random() < 0.9 THEN finished_at END
FROM jobs_job WHERE finished_at IS NOT NULL AND phase IN ('completed', 'failed')
ORDER BY finished_at
"""
_SAMPLES = """
INSERT INTO usage_sample (pod_id, span_seconds, at, cpu_ms, memory_bytes)
SELECT pod.id, 60, %(now)s - minute * interval '1 minute', (60 - minute) * 50000, 1073741824
FROM jobs_pod pod CROSS JOIN generate_series(0, 59) AS minute WHERE pod.phase = 'running'
"""
