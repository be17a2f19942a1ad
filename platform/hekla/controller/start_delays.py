"""Report bound pods that the cluster does not accept yet, because one of its quotas is full, in their job's event log.

A delay is logged after five seconds, and again if the reason changes. Shorter delays are normal: the engine counts the
end of a pod earlier than the cluster does. Changed usage figures are not a new reason.
"""

import re
import time
from collections.abc import Mapping, Sequence
from datetime import datetime

from hekla.apps.jobs import services
from hekla.controller.lease_context import LeaseContext
from hekla.controller.state import StartDelay

REPORTED_AFTER_SECONDS = 5.0
_IN_USE = re.compile(r", used: .*?(?=, limited: |$)")


def record_delays(lease: LeaseContext, late: Mapping[int, Sequence[str]], *, now: datetime) -> None:
    """Log new delays. `late`: by the row of a job, the messages about its pods that could not start now."""
    state, moment = lease.state, time.monotonic()
    state.start_delays = {pk: state.start_delays.get(pk) or StartDelay(moment) for pk in late}
    for pk, delay in state.start_delays.items():
        reasons = {_IN_USE.sub("", text): text for text in late[pk]}
        news = sorted(reasons.keys() - delay.reported) if moment - delay.since >= REPORTED_AFTER_SECONDS else []
        if news:
            services.delay(lease.cluster_id, lease.epoch, pk, reasons[news[0]], now=now)
            delay.reported.update(reasons)
