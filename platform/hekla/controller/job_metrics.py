"""Reads the metrics that jobs print from the logs of their pods.

Each run reads the next parts of the logs that are due, for a few seconds at most. It needs no lease: what it stores
depends on the log alone, and a part that two runs read is stored once. A cluster that does not answer is tried once in
a run: each try may take seconds, in which the logs of other clusters wait. A log that cannot be read for another reason
is tried again a minute later, and the others do not wait for it.
"""

import logging
import time
from datetime import datetime

from hekla.apps.job_metrics import event_files, services
from hekla.apps.job_metrics.models import MetricLog
from hekla.apps.job_metrics.services import READ_BYTES, READ_EVERY, LogPart
from hekla.apps.job_metrics.signals import metrics_changed
from hekla.apps.usage import folders
from hekla.backends import registry
from hekla.backends.base import BackendError, UnknownPod
from hekla.controller.backends import backend_of
from hekla.controller.observations import key_of
from hekla.domain.errors import HeklaError

_logger = logging.getLogger(__name__)
_AT_ONCE = 50
_MOST_SECONDS = 8.0
_SKIP = READ_EVERY / 2
"""Logs that were skipped come before the one that was tried, in the next run."""


def read_metrics(*, now: datetime) -> int:
    """Store the metrics in the next parts of the logs that are due. Returns the number of logs with new metrics."""
    while services.follow(now=now):
        pass
    deadline, count, changed = time.monotonic() + _MOST_SECONDS, 0, set[int]()
    silent = set[int]()
    while time.monotonic() < deadline and (claimed := services.claim(now=now, limit=_AT_ONCE)):
        fresh = [
            log.pod for log in claimed if log.read_at is None and registry.measures_files(log.pod.job.cluster.kind)
        ]
        if fresh:
            event_files.list_pods(fresh, now=now)
            folders.list_jobs([pod.job for pod in fresh], now=now)
        skipped = []
        for place, log in enumerate(claimed):
            if time.monotonic() > deadline:
                services.release(claimed[place:], due_at=now)
                break
            cluster = log.pod.job.cluster_id
            if cluster in silent:
                skipped.append(log)
                continue
            try:
                part = _part(log)
                nothing = LogPart(b"", log.offset, is_last=False, is_unknown=True)
                has_new = services.store(log, part or nothing, now=now)
            except Exception:
                _logger.exception("the metrics of pod %s cannot be read", log.pod_id)
                continue
            if part is None:
                silent.add(cluster)
            if has_new:
                changed.add(log.job_id)
                count += 1
        services.release(skipped, due_at=now + _SKIP)
    if changed:
        metrics_changed.send(sender=MetricLog, jobs=changed)
    return count


def _part(log: MetricLog) -> LogPart | None:
    """The next bytes of the log; None while its backend does not answer."""
    pod = log.pod
    try:
        found = backend_of(pod.job.cluster).logs(key_of(pod), offset=log.offset, limit=READ_BYTES)
    except UnknownPod:  # it has not started, or nothing of it is left
        return LogPart(b"", log.offset, is_last=pod.is_final, is_unknown=True)
    except (BackendError, HeklaError):  # HeklaError: the configuration of the cluster is wrong
        return None
    return LogPart(found.data, found.next_offset, is_last=found.complete, times=found.times)
