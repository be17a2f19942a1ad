"""Evictions that the cluster's disruption budgets forbid."""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from datetime import datetime

from hekla.apps.clusters import leases
from hekla.apps.event_log.services import CONTROLLER, unit_of_work
from hekla.apps.jobs import job_rows
from hekla.apps.jobs.models import Pod
from hekla.apps.jobs.services.telling import tell
from hekla.domain import events


def block_evictions(
    cluster_id: int, epoch: int, whys: Mapping[int, str], *, logged: AbstractSet[int] = frozenset(), now: datetime
) -> None:
    """Keep these pods (by row id, with the reason) and cancel their requested evictions. Raises LeaseLost.

    `logged`: pods whose blocked eviction is in the log already.
    """
    for pod in Pod.objects.filter(pk__in=whys).order_by("pk"):
        with unit_of_work():
            leases.assert_held(cluster_id, epoch)
            job = job_rows.locked(pod.job_id)
            pod.refresh_from_db()
            if pod.is_final:
                continue
            if is_cancelled := pod.evicted and pod.stopping:
                pod.evicted, pod.stopping, pod.stop_reason = False, False, ""
                pod.save(update_fields=["evicted", "stopping", "stop_reason"])
            if is_cancelled or pod.pk not in logged:
                event = events.PodEvictionBlocked(
                    task=pod.task, index=pod.index, attempt=pod.attempt, message=whys[pod.pk]
                )
                tell(job, event, actor=CONTROLLER, now=now)
