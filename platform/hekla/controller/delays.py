"""Pods that have a place and are not taken there yet, as a quota of the cluster is full: their job's log says so.

Not at each try: when it has lasted for a moment, and when the reason is another. The engine counts an end earlier than
the cluster does, so what is refused for a moment only is no news; nor are other numbers in use.
"""

import re
import time
from collections.abc import Mapping, Sequence
from datetime import datetime

from hekla.apps.jobs import services
from hekla.controller.observations import Delay, Hold

TOLD_AFTER_SECONDS = 5.0
_IN_USE = re.compile(r", used: .*?(?=, limited: |$)")


def tell(hold: Hold, late: Mapping[int, Sequence[str]], *, now: datetime) -> None:
    """`late`: by the rows of jobs, what was said now of those of their pods that were not taken."""
    memory, moment = hold.memory, time.monotonic()
    memory.delays = {pk: memory.delays.get(pk) or Delay(moment) for pk in late}
    for pk, delay in memory.delays.items():
        reasons = {_IN_USE.sub("", text): text for text in late[pk]}
        news = sorted(reasons.keys() - delay.told) if moment - delay.since >= TOLD_AFTER_SECONDS else []
        if news:
            services.delay(hold.cluster_id, hold.epoch, pk, reasons[news[0]], now=now)
            delay.told.update(reasons)
