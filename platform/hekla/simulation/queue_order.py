"""The pending jobs of a queue with their positions in the engine's order, as far as a person may see them.

Positions count all jobs of the queue, also those of other tenants.
"""

from collections.abc import Callable
from dataclasses import dataclass

from hekla.apps.jobs.models import Job
from hekla.apps.queues.models import Queue
from hekla.simulation.queue_shares import ClusterShares


@dataclass(frozen=True, slots=True)
class QueuePositions:
    """Jobs by row id, in order. `places`: positions from 1; `others`: jobs in the queue that do not wait.

    `waiting`, `inside`: the number of each, visible or not.
    """

    places: dict[int, int]
    others: tuple[int, ...]
    waiting: int
    inside: int


def line(here: ClusterShares, queue: Queue, sees: Callable[[Job], bool]) -> QueuePositions:
    """The unfinished jobs of a queue; only those for which `sees` returns true are listed."""
    shares = here.shares.get(queue.name)
    waiting = [int(uid) for uid in shares.waiting_jobs] if shares else []
    own = {job.pk: job for job in here.jobs.get(queue.pk, ())}
    visible = {pk for pk, job in own.items() if sees(job)}
    places = {pk: place for place, pk in enumerate(waiting, start=1) if pk in visible}
    return QueuePositions(places, tuple(sorted(visible - places.keys())), len(waiting), len(own.keys() - set(waiting)))
