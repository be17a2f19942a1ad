"""Celery beat as a thread of a worker: on one machine it needs no process of its own, which would hold 20 MiB.

    celery worker --periodic-tasks FILE

Of several workers only one may have this option, so a deployment with more runs `celery beat` instead.
"""

import logging
from threading import Event, Thread
from typing import Any

from celery import Celery, bootsteps
from celery.beat import Service
from click import Option

log = logging.getLogger(__name__)
OPTION = "periodic_tasks"
_AGAIN_SECONDS = 5.0


class BeatThread(bootsteps.StartStopStep):
    """Sends the periodic tasks while the worker runs. No error ends the thread: it starts beat again."""

    conditional = True

    def __init__(self, parent: Any, **options: Any) -> None:  # noqa: ANN401  (a worker; Celery has no types for it)
        super().__init__(parent, **options)
        self._file = options.get(OPTION)
        self._stopping = Event()
        self._service: Service | None = None

    def include_if(self, _parent: Any) -> bool:  # noqa: ANN401
        """Whether the option is given."""
        return self._file is not None

    def start(self, parent: Any) -> None:  # noqa: ANN401
        """Start the thread."""
        Thread(target=self._run, args=[parent.app], name="beat", daemon=True).start()

    def stop(self, _parent: Any) -> None:  # noqa: ANN401
        """Send no further task."""
        self._stopping.set()
        if self._service is not None:
            self._service.stop()

    def _run(self, app: Celery[Any]) -> None:
        app.set_current()
        while not self._stopping.is_set():
            try:
                self._service = Service(app, schedule_filename=self._file)
                self._service.start()
            except Exception:
                log.exception("the periodic tasks are interrupted")
                self._stopping.wait(_AGAIN_SECONDS)


def add_to(app: Celery[Any]) -> None:
    """Give the workers of this application the option."""
    words = "Also send the periodic tasks; the file stores when each was last sent."
    app.user_options["worker"].add(Option((f"--{OPTION.replace('_', '-')}",), help=words))
    app.steps["worker"].add(BeatThread)
