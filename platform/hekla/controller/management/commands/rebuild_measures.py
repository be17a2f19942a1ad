"""Derive all measures again from the event log and the rows of jobs. It can run at any time, and be interrupted."""

import time
from typing import Any

from django.core.management.base import BaseCommand

from hekla.apps.measures import services
from hekla.lib import clock


class Command(BaseCommand):
    help = (
        "Derive all measures again from the event log and the rows of jobs. Jobs whose history is purged still count."
    )

    def handle(self, *_args: Any, **_options: Any) -> None:  # noqa: ANN401
        """Print how many hours were computed, and how long it took."""
        began = time.monotonic()
        hours = services.rebuild(now=clock.now())
        of_jobs = services.rebuild_jobs(now=clock.now())
        seconds = time.monotonic() - began
        self.stdout.write(f"Hours computed again: {hours} of GPU time, {of_jobs} of jobs, in {seconds:.1f} s.")
