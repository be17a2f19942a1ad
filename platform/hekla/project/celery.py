"""The Celery application. Messages only wake: what is to be done stands in rows and in the event log."""

import os
import warnings
from typing import Any

from celery import Celery
from celery.exceptions import SecurityWarning
from celery.signals import task_postrun, task_prerun, worker_ready
from django.db import close_old_connections

from hekla.launcher.gc_tuning import settle

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "hekla.project.settings")

# It warns of root for its pickle messages, which Hekla does not take, and of defaults of its next major version.
warnings.filterwarnings("ignore", r"\s*You're running the worker with superuser", SecurityWarning)
warnings.filterwarnings("ignore", category=PendingDeprecationWarning)

app = Celery("hekla")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()


@task_prerun.connect
@task_postrun.connect
def check_connection(**_kwargs: Any) -> None:  # noqa: ANN401
    """As a request does: a connection that failed is closed, and one that is kept is looked at before its next use."""
    close_old_connections()


@worker_ready.connect
def begin(**_kwargs: Any) -> None:  # noqa: ANN401
    """A worker goes on for long."""
    settle()
