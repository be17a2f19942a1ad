"""The Celery application. Messages only wake: what is to be done stands in rows and in the event log."""

import os
from typing import Any

from celery import Celery
from celery.signals import worker_ready

from hekla.project.steady import settle

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "hekla.project.settings")

app = Celery("hekla")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()


@worker_ready.connect
def begin(**_kwargs: Any) -> None:  # noqa: ANN401
    """A worker goes on for long."""
    settle()
