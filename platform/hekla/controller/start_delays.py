"""Pods that have a place and are not taken there yet, as a quota of the cluster is full: their job's log says so.

Not at each try: when it has lasted for a moment, and when the reason is another. The engine counts an end earlier than
the cluster does, so what is refused for a moment only is no news; nor are other numbers in use.
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
    """`late`: by the rows of jobs, what was said now of those of their pods that were not taken."""
    state, moment = lease.state, time.monotonic()
    state.start_delays = {pk: state.start_delays.get(pk) or StartDelay(moment) for pk in late}
    for pk, delay in state.start_delays.items():
        reasons = {_IN_USE.sub("", text): text for text in late[pk]}
        news = sorted(reasons.keys() - delay.reported) if moment - delay.since >= REPORTED_AFTER_SECONDS else []
        if news:
            services.delay(lease.cluster_id, lease.epoch, pk, reasons[news[0]], now=now)
            delay.reported.update(reasons)
