"""Runs experiments of the policy lab, one after another, each in a process of its own.

The process computes for minutes. In a thread of the worker it would slow down everything else there, and could not be
stopped. It reports its progress in the row of the experiment; this part only watches it, and ends it if it is not
wanted any more or hangs. If the worker stops, the experiment waits for the next one.
"""

import logging
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from threading import Event

from celery.signals import worker_shutting_down

from hekla.apps.policy_lab import services
from hekla.apps.policy_lab.models import LabRun
from hekla.apps.policy_lab.problems import LabProblem
from hekla.lib import clock

log = logging.getLogger(__name__)
MAX_SECONDS = 1800.0
_WATCH_SECONDS = 1.0
_is_stopping = Event()


@worker_shutting_down.connect
def _stop(**_facts: object) -> None:
    """End the process of an experiment: a worker waits for its tasks before it stops."""
    _is_stopping.set()


def run_waiting() -> None:
    """Run the experiments that wait. Returns at once if another worker runs one."""
    while not _is_stopping.is_set() and (row := services.claim(now=clock.now())) is not None:
        _run(row)


def _run(row: LabRun) -> None:
    process = subprocess.Popen(_command(row), stdin=subprocess.DEVNULL, start_new_session=True)
    deadline = time.monotonic() + MAX_SECONDS
    try:
        while process.poll() is None and _goes_on(row, deadline):
            with suppress(subprocess.TimeoutExpired):
                process.wait(_WATCH_SECONDS)
        status = process.poll()
    finally:
        if process.poll() != 0:
            _end(process)
    if status is None and _is_stopping.is_set():
        services.release(row.uid, row.attempts)
    elif status is None:
        _fail(row, LabProblem("too_long", {"minutes": round(MAX_SECONDS / 60)}))
    elif status:
        log.warning("the process of experiment %s ended with status %s", row.uid, status)
        _fail(row, _problem_of(status))


def _fail(row: LabRun, problem: LabProblem) -> None:
    services.fail(row.uid, row.attempts, problem, now=clock.now())


def _problem_of(status: int) -> LabProblem:
    """A status below 0 is the signal that ended the process."""
    if status < 0:
        return LabProblem("process_killed", {"signal": -status})
    return LabProblem("process_ended", {"status": status})


def _command(row: LabRun) -> list[str]:
    return [sys.executable, "-m", "django", "run_experiment", str(row.uid), str(row.attempts)]


def _goes_on(row: LabRun, deadline: float) -> bool:
    """Whether it is still wanted and may take longer. It counts as alive: it reports nothing while it reads."""
    if _is_stopping.is_set() or time.monotonic() >= deadline:
        return False
    return services.beat(row.uid, row.attempts, None, now=clock.now())


def _end(process: "subprocess.Popen[bytes]") -> None:
    """End the process and those that it started."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
