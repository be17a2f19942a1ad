"""The Celery application. Messages only wake workers up: the work itself is in the database and the event log."""

import logging
import os
import warnings
from typing import Any

from celery import Celery, Task
from celery.exceptions import SecurityWarning
from celery.signals import task_postrun, task_prerun, worker_ready
from django.db import InterfaceError, OperationalError, close_old_connections, connection

from hekla.launcher import beat_process, beat_thread
from hekla.launcher.broker_timers import NoBindingTimer
from hekla.launcher.gc_tuning import settle

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "hekla.project.settings")

# Celery warns about root because of pickle, which Hekla does not accept, and about defaults of its next major version.
warnings.filterwarnings("ignore", r"\s*You're running the worker with superuser", SecurityWarning)
warnings.filterwarnings("ignore", category=PendingDeprecationWarning)

log = logging.getLogger(__name__)


class HeklaTask(Task):  # type: ignore[type-arg]
    """A task that ends with one line in the log while there is no database: a later message runs it again."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        """Run the task. Raises its errors, except those of a lost connection."""
        try:
            return super().__call__(*args, **kwargs)
        except (OperationalError, InterfaceError) as error:
            if connection.is_usable():  # a deadlock, for example
                raise
            log.warning("%s: no database now: %.200s", self.name, str(error).partition("\n")[0])


app = Celery("hekla", task_cls=HeklaTask)
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
app.steps["consumer"].add(NoBindingTimer)
beat_thread.add_to(app)
beat_process.add_to(app)


@task_prerun.connect
@task_postrun.connect
def check_connection(**_kwargs: Any) -> None:  # noqa: ANN401
    """Close failed database connections, and check kept ones before their next use, as Django does per request."""
    close_old_connections()


@worker_ready.connect
def begin(**_kwargs: Any) -> None:  # noqa: ANN401
    """Tune garbage collection for a long-running worker."""
    settle()
