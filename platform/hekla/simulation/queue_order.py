"""Who waits in a queue, each with the place in line that the engine gives it, as far as a person may see them.

Places are counted among all jobs of the queue, those of other tenants too.
"""

from collections.abc import Callable
from dataclasses import dataclass

from hekla.apps.jobs.models import Job
from hekla.apps.queues.models import Queue
from hekla.simulation.queue_shares import Present


@dataclass(frozen=True, slots=True)
class PlacesInQueue:
    """Jobs by row id, the first in line first. `places`: from 1; `others`: what is in the queue and waits for nothing.

    `waiting`, `inside`: how many there are of each, seen or not.
    """

    places: dict[int, int]
    others: tuple[int, ...]
    waiting: int
    inside: int


def line(here: Present, queue: Queue, sees: Callable[[Job], bool]) -> PlacesInQueue:
    """The jobs of a queue that are not over, of which those are told that somebody `sees`."""
    standing = here.standings.get(queue.name)
    waiting = [int(uid) for uid in standing.waiting_jobs] if standing else []
    own = {job.pk: job for job in here.snapshot.jobs.values() if job.queue_id == queue.pk}
    visible = {pk for pk, job in own.items() if sees(job)}
    places = {pk: place for place, pk in enumerate(waiting, start=1) if pk in visible}
    return PlacesInQueue(places, tuple(sorted(visible - places.keys())), len(waiting), len(own.keys() - set(waiting)))
