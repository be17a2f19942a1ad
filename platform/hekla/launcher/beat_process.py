"""Celery beat as a process that does not load the code of the tasks, which it sends by their names.

That code is most of the console: without it beat is ready in a second, and holds a third of the memory.
"""

from logging.config import dictConfig
from typing import Any

from celery import Celery
from celery.apps.beat import Beat
from django.conf import settings


class NamesOnlyBeat(Beat):
    """Beat knows the tasks by the schedule and their queues by the routes, which are settings."""

    def init_loader(self) -> None:
        """Import no task. The log is that of all processes, which Django would set up with the tasks."""
        dictConfig(settings.LOGGING)
        if self.app is not None:
            self.app.finalize()


def add_to(app: Celery[Any]) -> None:
    """Let `celery beat` of this application start so."""
    vars(app)["Beat"] = app.subclass_with_self(NamesOnlyBeat, reverse="Beat")  # a cached property of Celery's
