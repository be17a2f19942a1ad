"""Fills a console and a cluster with running pods in bulk, because starting them one by one would take hours.

The jobs are submitted. SQL then marks them as running and inserts their pods. The pods are created on the cluster, on
the nodes in these rows, with the manifests that Hekla would create.
"""

from collections.abc import Iterator
from itertools import islice

from django.db import connection

from hekla.apps.jobs.models import Job
from hekla.backends.kubernetes.api import Json
from hekla.backends.kubernetes.config import KubernetesConfig
from hekla.backends.kubernetes.manifests import Manifests
from hekla.bench.cluster.console import BenchConsole
from hekla.bench.cluster.place import BenchCluster, pods_of, until
from hekla.controller.pods import order_of

FOR_EVER = 1_000_000.0
"""Run time of pods in seconds, longer than any measurement."""
_AT_ONCE = 10_000
"""Pods that are created before waiting for them, few enough to run within the time-out on a slow machine."""
_JOBS = """
UPDATE jobs_job SET phase = 'running', gang_phase = 'running', started_at = now()
FROM queues_queue queue WHERE queue.id = queue_id AND queue.name = %(queue)s
"""
_PODS = """
INSERT INTO jobs_pod (job_id, task, index, attempt, version, slot, address, phase, node, stopping, evicted, stop_reason,
                      reason, message, created_at, bound_at, started_at)
SELECT id, 'worker', place, 1, 1, slot,
       name || '-worker-' || place || '.job-' || replace(uid::text, '-', ''), 'running',
       (%(nodes)s::text[])[1 + slot %% cardinality(%(nodes)s::text[])], false, false, '', '', '', now(), now(), now()
FROM (
    SELECT job.id, job.name, job.uid, place, nextval('jobs_slot') AS slot
    FROM jobs_job job JOIN queues_queue queue ON queue.id = job.queue_id AND queue.name = %(queue)s
    CROSS JOIN LATERAL generate_series(0, job.replicas - 1) AS place
) AS wanted
"""


def fill(place: BenchCluster, console: BenchConsole, queue: str, *, running: int, gang: int) -> None:
    """Fill the queue with jobs of `gang` pods each, until `running` pods run."""
    for _number in range(running // gang):
        console.submit(queue, gang, FOR_EVER)
    with connection.cursor() as cursor:
        cursor.execute(_JOBS, {"queue": queue})
        cursor.execute(_PODS, {"queue": queue, "nodes": place.nodes()})
        cursor.execute("VACUUM ANALYZE")
    manifests = _manifests(queue)
    waiting: dict[str, str | int] = {"fieldSelector": "status.phase=Pending", "limit": 1}
    while some := list(islice(manifests, _AT_ONCE)):
        place.make(queue, some)
        until(lambda: not place.api.get(pods_of(queue), **waiting)["items"], "The pods of the cluster do not run.")


def _manifests(queue: str) -> Iterator[Json]:
    manifests = Manifests(queue, KubernetesConfig(namespace=queue))
    for job in Job.objects.filter(queue__name=queue).select_related("owner").iterator():
        pods = list(job.pods.all())
        hosts = {(pod.task, pod.index): pod.address for pod in pods}
        for pod in pods:
            pod.job = job
            made = manifests.pod(order_of(job, pod, hosts))
            made["spec"]["nodeName"] = pod.node
            yield made
