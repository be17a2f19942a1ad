"""The heartbeat of a control worker, for whoever supervises it: `manage.py up`, systemd or Kubernetes.

The worker touches a file while its reconciliations make progress, and notifies systemd. A worker that hangs, as a whole
or in one reconciliation, does neither, and is replaced. Not a thread of its own beats: it would go on while all others
hang.
"""

import logging
import socket
from pathlib import Path

from django.conf import settings

from hekla.controller.controllers import controllers

log = logging.getLogger(__name__)
STUCK_AFTER_SECONDS = 120.0
"""Longer than any step of a reconciliation between two requests to its backend, on the largest clusters."""


def beat() -> None:
    """Report that this worker is alive, unless a reconciliation is stuck. Never fails."""
    if stuck := controllers.stuck(STUCK_AFTER_SECONDS):
        log.error("no heartbeat: the reconciliation of %s is stuck", ", ".join(map(str, stuck)))
        return
    try:
        if settings.HEARTBEAT_FILE:
            Path(settings.HEARTBEAT_FILE).touch()
        if settings.NOTIFY_SOCKET:
            _notify_systemd(settings.NOTIFY_SOCKET)
    except OSError as error:
        log.warning("cannot report that this worker is alive: %s", error)


def _notify_systemd(address: str) -> None:
    """Reset the watchdog of the unit, as sd_notify(3) describes."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as line:
        line.connect("\0" + address[1:] if address.startswith("@") else address)
        line.send(b"WATCHDOG=1")
