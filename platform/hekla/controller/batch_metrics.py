"""Reads the metrics that the jobs of batches print from the logs of their pods.

Each run reads the next parts of the logs that are due, for a few seconds at most. It needs no lease: what it stores
depends on the log alone, and a part that two runs read is stored once.
"""

import time
from datetime import datetime
from uuid import UUID

from hekla.apps.batches import metric_logs
from hekla.apps.batches.metric_logs import READ_BYTES, LogPart
from hekla.apps.batches.models import MetricLog
from hekla.apps.batches.signals import metrics_changed
from hekla.backends import logs as backend_logs
from hekla.controller.backends import backend_of
from hekla.controller.observations import key_of
from hekla.domain.errors import HeklaError

_AT_ONCE = 50
_MOST_SECONDS = 8.0


def read_metrics(*, now: datetime) -> int:
    """Store the metrics in the next parts of the logs that are due. Returns the number of logs with new metrics."""
    deadline, count, changed = time.monotonic() + _MOST_SECONDS, 0, set[UUID]()
    while time.monotonic() < deadline and (claimed := metric_logs.claim(now=now, limit=_AT_ONCE)):
        for place, log in enumerate(claimed):
            if time.monotonic() > deadline:
                metric_logs.release(claimed[place:], now=now)
                break
            if metric_logs.store(log, _part(log), now=now):
                changed.add(log.member.batch.uid)
                count += 1
    metric_logs.mark_read()
    if changed:
        metrics_changed.send(sender=MetricLog, batches=changed)
    return count


def _part(log: MetricLog) -> LogPart:
    """The next bytes of the log; none while its backend does not answer."""
    pod = log.pod
    try:
        backend = backend_of(pod.job.cluster)
        found = backend_logs.read_bytes(backend, key_of(pod), offset=log.offset, limit=READ_BYTES, ended=pod.is_final)
    except HeklaError:  # the configuration of the cluster is wrong
        return LogPart(b"", log.offset, is_last=False)
    return LogPart(found.data, found.next_offset, is_last=found.complete)
