"""What the queues of the simulated day deserve: each the same part of all GPUs, as far as its jobs request them."""

from collections.abc import Mapping
from datetime import datetime

from django.db.models import Sum

from hekla.apps.clusters.models import Cluster
from hekla.apps.measures import queue_services
from hekla.apps.measures.models import GpuHolding
from hekla.apps.measures.queue_services import QueueAmounts
from hekla.apps.queues.models import Queue
from hekla.bench.operations.size import OperationsSize
from hekla.bench.operations.workload import GPU, GPUS_PER_NODE

_THOUSAND = 1000


def observe(cluster: Cluster, epoch: int, size: OperationsSize, lacking: Mapping[int, int], *, now: datetime) -> None:
    """Store the amounts of all queues. `lacking`: the GPUs that pending gangs of a queue request."""
    open_rows = GpuHolding.objects.filter(cluster_id=cluster.pk, finished_at=None).order_by()
    held = dict(open_rows.values_list("queue_id").annotate(held=Sum("gpus")))
    part = size.nodes * GPUS_PER_NODE * _THOUSAND // size.queues
    found = {}
    for queue in Queue.objects.filter(cluster=cluster).values_list("pk", flat=True):
        allocated, waiting = int(held.get(queue, 0)), _THOUSAND * lacking.get(queue, 0)
        deserved = min(part, allocated + waiting)
        found[queue, GPU] = QueueAmounts(False, deserved, allocated, waiting, max(allocated - deserved, 0), 0)
    queue_services.observe_queues(cluster.pk, epoch, found, now=now)
