"""Moves a pending job to another cluster of its federated queue, while none of its pods has a node.

A move is one transaction with the job's row locked. The controller of the old cluster may decide about the job at the
same time. After a move, that decision names an old revision and is void; after a bind, the job no longer moves.
"""

from collections.abc import Sequence
from datetime import datetime

from hekla.apps.event_log.services import CONTROLLER, unit_of_work
from hekla.apps.jobs import job_rows
from hekla.apps.jobs.models import Job, Placement
from hekla.apps.jobs.services.telling import tell
from hekla.apps.jobs.services.transitions import set_gang_phase
from hekla.apps.queues.models import Queue
from hekla.domain import events
from hekla.domain.phases import GangPhase, JobPhase, PodPhase
from hekla.domain.routing import PlacementCandidate


def move(job: Job, queue: Queue, candidates: Sequence[PlacementCandidate], *, now: datetime) -> bool:
    """Move the job to this queue of another cluster. Returns whether it moved.

    It does not move if its revision is no longer that of `job`, if it does not wait or a pod has or had a node, or if
    the queue is not open or not in its federated queue.
    """
    with unit_of_work():
        row = job_rows.locked(job.pk)  # a join finds no row after a concurrent move
        placement = (
            Placement.objects.filter(job=row, federated_queue__members=queue).select_related("federated_queue").first()
        )
        if (
            placement is None
            or placement.federated_queue is None
            or row.revision != job.revision
            or not _may_go(row, queue)
        ):
            return False
        _go(row, queue, placement, candidates, now)
    return True


def _may_go(job: Job, queue: Queue) -> bool:
    waits = job.phase == JobPhase.PENDING and job.gang_phase in (GangPhase.PENDING, GangPhase.INQUEUE)
    if not waits or job.deleted_at is not None or job.cluster_id == queue.cluster_id or not queue.is_open:
        return False
    if job.cluster.leads_jobs or queue.cluster.leads_jobs or job.cluster.is_simulated != queue.cluster.is_simulated:
        return False
    return not job.pods.exclude(phase=PodPhase.PENDING, node="", stopping=False).exists()


def _go(job: Job, queue: Queue, placement: Placement, candidates: Sequence[PlacementCandidate], now: datetime) -> None:
    """Reset what was made for the old cluster: it never left the database, and is made again for the new one."""
    old, documents = job.queue, tuple(one.as_data() for one in candidates)
    job.pods.all().delete()
    set_gang_phase(job, GangPhase.PENDING, actor=CONTROLLER, now=now)
    job.queue, job.cluster, job.revision = queue, queue.cluster, job.revision + 1
    job.waiting, job.reserved_slots = [], []
    job.save(update_fields=["queue", "cluster", "revision", "gang_phase", "waiting", "reserved_slots"])
    placement.candidates, placement.at, placement.moves = list(documents), now, placement.moves + 1
    placement.save(update_fields=["candidates", "at", "moves"])
    event = events.JobReassigned(
        federated_queue=str(placement.federated_queue),
        queue=queue.name,
        cluster=queue.cluster.name,
        old_queue=old.name,
        old_cluster=old.cluster.name,
        candidates=documents,
    )
    tell(job, event, actor=CONTROLLER, now=now, topics=[f"queue:{old.pk}", f"cluster:{old.cluster_id}"])
