"""Cycles that a run can leave out, because their decisions are known.

Under the plain plugins, a waiting job that is not admitted has no pods and changes nothing for others. While nothing
else happens, a job like one that was refused is refused too.
"""

from collections import Counter
from collections.abc import Hashable, Iterable

from hekla.engine.job_twins import shape_of
from hekla.engine.model import QueueSpec
from hekla.engine.policy import SchedulerPolicy
from hekla.simulation.lab.job_run import JobRun

PLACING_ACTIONS = frozenset({"enqueue", "allocate", "backfill"})
"""Actions that evict nothing. What one cycle binds then needs no other: it has tried all waiting jobs with what was
left.
"""
_PLAIN_PLUGINS = frozenset(
    {"priority", "gang", "conformance", "overcommit", "drf", "predicates", "proportion", "nodeorder", "binpack"}
)


def is_plain(policy: SchedulerPolicy, queues: Iterable[QueueSpec]) -> bool:
    """Whether this module's rules hold: for Hekla's default policy, and for others with its plugins and actions."""
    names = {option.name for tier in policy.tiers for option in tier}
    has_orders = any(queue.annotations for queue in queues)
    return PLACING_ACTIONS.issuperset(policy.actions) and names <= _PLAIN_PLUGINS and not has_orders


class Refusals:
    """The jobs that are not admitted, counted by shape."""

    def __init__(self) -> None:
        self._shapes: dict[str, Hashable] = {}
        self._counts: Counter[Hashable] = Counter()

    def add(self, one: JobRun) -> None:
        """This job waits for its admission."""
        shape = shape_of(one.job.group)
        self._shapes[one.job.uid] = shape
        self._counts[shape] += 1

    def discard(self, uid: str) -> None:
        """This job waits for it no more, if it did."""
        if uid in self._shapes:
            self._counts[self._shapes.pop(uid)] -= 1

    def has_one_like(self, one: JobRun) -> bool:
        """Whether a job of the same shape waits for its admission."""
        shape = shape_of(one.job.group)
        return shape is not None and self._counts[shape] > 0
