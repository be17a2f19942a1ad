"""A job's own disruption budget: how many of its running pods may be evicted at once (`volcano-spec` §5.5).

An annotation sets it as a number or a percentage of the job's pods: max unavailable or min available. Without one, a
job may lose one pod at a time.
"""

import math
import re
from collections.abc import Iterable

from hekla.engine.job_info import JobInfo, PodInfo
from hekla.engine.model import PodStatus

_MAX_UNAVAILABLE, _MIN_AVAILABLE = "volcano.sh/jdb-max-unavailable", "volcano.sh/jdb-min-available"
_AMOUNT = re.compile(r"(\d{1,9})(%?)", re.ASCII)
_OVER = (PodStatus.SUCCEEDED, PodStatus.FAILED)


def has_budget(job: JobInfo) -> bool:
    """Whether the job has a budget annotation."""
    return bool(job.group.annotations.get(_MAX_UNAVAILABLE) or job.group.annotations.get(_MIN_AVAILABLE))


def evictions_left(job: JobInfo, *, follows_volcano: bool) -> int:
    """How many more pods may be evicted. A job below its minimum may lose none; in Volcano one."""
    running, annotations, everyone = job.count_by_status[PodStatus.RUNNING], job.group.annotations, job.size
    if text := annotations.get(_MAX_UNAVAILABLE):
        away = everyone - sum(job.count_by_status[status] for status in _OVER) - running
        return max(_amount(text, everyone) - away, 0)
    if text := annotations.get(_MIN_AVAILABLE):
        spare = running - _amount(text, everyone)
        return spare if spare >= 0 else int(follows_volcano)
    return 1


def within_budget(pods: Iterable[PodInfo], *, follows_volcano: bool) -> list[PodInfo]:
    """The first pods of each job, as many as its budget allows."""
    by_job: dict[str, list[PodInfo]] = {}
    for pod in pods:
        by_job.setdefault(pod.job.group.uid, []).append(pod)
    return [
        pod for mine in by_job.values() for pod in mine[: evictions_left(mine[0].job, follows_volcano=follows_volcano)]
    ]


def _amount(text: str, everyone: int) -> int:
    """A number, or a percentage rounded up; 0 if it is neither."""
    match = _AMOUNT.fullmatch(text.strip())
    if not match:
        return 0
    return math.ceil(int(match[1]) * everyone / 100) if match[2] else int(match[1])
