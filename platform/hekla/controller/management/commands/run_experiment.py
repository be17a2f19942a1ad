"""Run one experiment of the policy lab: the process that `controller.policy_lab` starts."""

import os
import signal
from argparse import ArgumentParser
from contextlib import suppress
from pathlib import Path
from typing import Any
from uuid import UUID

from django.core.management.base import BaseCommand
from django.db import connections

from hekla.controller.policy_lab import MAX_SECONDS
from hekla.simulation import policy_lab
from hekla.simulation.lab import process
from hekla.simulation.lab.experiment import Experiment, FinishedRun, LabColumn
from hekla.simulation.lab.simulated_run import Progress

_NICE = 10


class Command(BaseCommand):
    help = "Run one experiment of the policy lab. The console starts this by itself."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        """The uid of the experiment, and which attempt this is."""
        parser.add_argument("uid", type=UUID)
        parser.add_argument("attempt", type=int)

    def handle(self, *_args: Any, **options: Any) -> None:  # noqa: ANN401
        """Run it, less urgently than all else. It goes on without the worker, as long as its row says so."""
        os.nice(_NICE)
        if _has_own_group():
            _bound()
        policy_lab.execute(options["uid"], options["attempt"], _run_all)


def _has_own_group() -> bool:
    return os.getpgrp() == os.getpid()


def _bound() -> None:
    """End with the forks some time after the worker should have done it. If memory is short, end first of all."""
    signal.signal(signal.SIGALRM, lambda *_facts: os.killpg(0, signal.SIGKILL))
    signal.alarm(round(MAX_SECONDS) + 60)
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")


def _run_all(wanted: Experiment, progress: Progress) -> dict[LabColumn, FinishedRun]:
    connections.close_all()  # the runs are forks, which must not share a connection

    def report(part: float) -> None:
        try:
            progress(part)
        except policy_lab.Unwanted:
            if _has_own_group():
                os.killpg(0, signal.SIGKILL)  # with the forks
            raise

    return process.finish_all(wanted, report)
