"""Measures the room that the files of jobs take, in the background."""

import time
from datetime import datetime, timedelta

from django.conf import settings

from hekla.apps.clusters import selectors as clusters
from hekla.apps.jobs import selectors
from hekla.apps.jobs.models import Job
from hekla.apps.usage import folders
from hekla.apps.usage.models import JobFolder
from hekla.backends import files
from hekla.backends.base import PodKey
from hekla.backends.files import FolderSize
from hekla.backends.pool import get_backend
from hekla.domain.errors import HeklaError

_AT_ONCE = 20
_MOST_SECONDS = 8.0


def measure_due(*, now: datetime) -> int:
    """Measure the folders that are due, for some seconds. Returns their number."""
    deadline, count = time.monotonic() + _MOST_SECONDS, 0
    while time.monotonic() < deadline and (claimed := folders.claim(now=now, limit=_AT_ONCE)):
        for place, folder in enumerate(claimed):
            if time.monotonic() > deadline:
                folders.release(claimed[place:], now=now)
                break
            count += _measure(folder, now)
    return count


def _measure(folder: JobFolder, now: datetime) -> bool:
    begin = time.monotonic()
    found = _size_of(folder.job)
    if found is None:
        folders.postpone(folder, now=now)
        return False
    took = timedelta(seconds=time.monotonic() - begin)
    folders.store(folder, found.size, found.files, is_complete=found.is_complete, took=took, now=now)
    return True


def _size_of(job: Job) -> FolderSize | None:
    pod = selectors.pods(job).filter(started_at__isnull=False).order_by("-pk").first()
    if pod is None:
        return None
    try:
        backend = get_backend(**clusters.backend_facts(job.cluster), home=settings.HEKLA_HOME)
    except HeklaError:
        return None
    return files.job_size(backend, PodKey(job.uid.hex, pod.task, pod.index, pod.attempt, tenant=job.tenant.slug))
