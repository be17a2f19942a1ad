"""A job that waits goes to another of the clusters that its name stands for, as long as nothing of it has a place.

All of it is one transaction that holds the job's row. The controller of the cluster that it leaves may have decided
about it meanwhile: that decision names the revision before, so it is void whichever of the two comes first.
"""

from collections.abc import Sequence
from datetime import datetime

from hekla.apps.event_log.services import CONTROLLER, unit_of_work
from hekla.apps.jobs.models import Job, Placement
from hekla.apps.jobs.services.telling import tell
from hekla.apps.jobs.services.transitions import set_gang_phase
from hekla.apps.queues.models import Queue
from hekla.domain import events
from hekla.domain.phases import GangPhase, JobPhase, PodPhase
from hekla.domain.routing import PlacementCandidate


def move(job: Job, queue: Queue, candidates: Sequence[PlacementCandidate], *, now: datetime) -> bool:
    """Let the job, as `job` has it, wait in this queue of another cluster. Returns whether it went there: it does not
    where it is another one by now, has a pod with a place or had one, or its name does not stand for that queue.
    """
    with unit_of_work():
        row = Job.objects.select_for_update().get(pk=job.pk)  # joined with its queue, it is not found once it went
        placement = Placement.objects.filter(job=row, span__members=queue).select_related("span").first()
        if placement is None or placement.span is None or row.revision != job.revision or not _may_go(row, queue):
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
    """What was made of it for the cluster before never left the database, and is made anew for the other one."""
    old, documents = job.queue, tuple(one.as_data() for one in candidates)
    job.pods.all().delete()
    set_gang_phase(job, GangPhase.PENDING, actor=CONTROLLER, now=now)
    job.queue, job.cluster, job.revision = queue, queue.cluster, job.revision + 1
    job.waiting, job.reserved_slots = [], []
    job.save(update_fields=["queue", "cluster", "revision", "gang_phase", "waiting", "reserved_slots"])
    placement.candidates, placement.at, placement.moves = list(documents), now, placement.moves + 1
    placement.save()
    event = events.JobReassigned(
        federated_queue=str(placement.span),
        queue=queue.name,
        cluster=queue.cluster.name,
        old_queue=old.name,
        old_cluster=old.cluster.name,
        candidates=documents,
    )
    tell(job, event, actor=CONTROLLER, now=now, topics=[f"queue:{old.pk}", f"cluster:{old.cluster_id}"])
