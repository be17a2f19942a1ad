"""How many running tasks of a job may be taken at once: its disruption budget (`volcano-spec` §5.5).

The job says it by annotation, as a number or a percentage of its tasks: at most so many are away, or at least so many
run. A job without one may lose one task at a time.
"""

import math
import re
from collections.abc import Iterable, Sequence

from hekla.engine.gangs import Gang, Member
from hekla.engine.model import TaskStatus

_MAX_UNAVAILABLE, _MIN_AVAILABLE = "volcano.sh/jdb-max-unavailable", "volcano.sh/jdb-min-available"
_AMOUNT = re.compile(r"(\d{1,9})(%?)", re.ASCII)
_OVER = (TaskStatus.SUCCEEDED, TaskStatus.FAILED)


def is_stated(gang: Gang) -> bool:
    """Whether the job says what it can bear."""
    return bool(gang.job.annotations.get(_MAX_UNAVAILABLE) or gang.job.annotations.get(_MIN_AVAILABLE))


def room(gang: Gang, *, follows_volcano: bool) -> int:
    """How many more may go. A job that has less than it needs loses nothing; in Volcano it loses one."""
    running, annotations, everyone = gang.count[TaskStatus.RUNNING], gang.job.annotations, gang.size
    if text := annotations.get(_MAX_UNAVAILABLE):
        away = everyone - sum(gang.count[status] for status in _OVER) - running
        return max(_amount(text, everyone) - away, 0)
    if text := annotations.get(_MIN_AVAILABLE):
        spare = running - _amount(text, everyone)
        return spare if spare >= 0 else int(follows_volcano)
    return 1


def within(members: Iterable[Member], *, follows_volcano: bool) -> list[Member]:
    """Of each job as many as its budget bears, in the order given."""
    of_jobs: dict[str, list[Member]] = {}
    for member in members:
        of_jobs.setdefault(member.job.job.uid, []).append(member)
    return [one for mine in of_jobs.values() for one in _first(mine, follows_volcano)]


def _first(members: Sequence[Member], follows_volcano: bool) -> Sequence[Member]:
    return members[: room(members[0].job, follows_volcano=follows_volcano)]


def _amount(text: str, everyone: int) -> int:
    """A number, or a percentage rounded up; what is neither is nothing."""
    match = _AMOUNT.fullmatch(text.strip())
    if not match:
        return 0
    return math.ceil(int(match[1]) * everyone / 100) if match[2] else int(match[1])
