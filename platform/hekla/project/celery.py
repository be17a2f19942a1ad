"""The Celery application. Messages only wake: what is to be done stands in rows and in the event log."""

import os

from celery import Celery

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "hekla.project.settings")

app = Celery("hekla")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
