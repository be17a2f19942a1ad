"""The back-off of restarts: a replica that fails again and again is restarted less and less often.

As the kubelet does for containers: the first restart follows at once, and each further failure in a row doubles the
delay, up to five minutes. A replica that has not failed for fifteen minutes begins anew.
"""

from collections.abc import Sequence
from datetime import timedelta

from hekla.domain.lifecycle.facts import PodFacts
from hekla.domain.phases import PodPhase

LONGEST_DELAY = timedelta(minutes=5)
_CALM = timedelta(minutes=15)
_MAX_DOUBLINGS = 30  # keeps the numbers small; the longest delay is reached long before


def failures_in_a_row(attempts: Sequence[PodFacts]) -> int:
    """How many of the last attempts of a replica failed and were retried, the one that is about to be included.

    Losses of nodes, evictions and restarts by a person end the row.
    """
    count, later = 0, None
    for pod in reversed(attempts):
        has_failed = pod.phase is PodPhase.FAILED and not pod.evicted and (pod.retried or not pod.stopping)
        if not has_failed or (later and pod.since and later - pod.since > _CALM):
            break
        count, later = count + 1, pod.since
    return count


def delay(failures: int, first: timedelta) -> timedelta:
    """How long a restart waits after so many failures in a row; `first`: the delay after the second."""
    if failures <= 1:
        return timedelta(0)
    doublings = min(failures - 2, _MAX_DOUBLINGS)
    return min(first * (1 << doublings), LONGEST_DELAY)
