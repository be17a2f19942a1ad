"""The room that files of jobs take: the work list of those who measure it, and the limit of a tenant.

Measuring reads a whole folder, so no request does it. A job gets a row when a log of it is read for the first time.
A running job is measured every ten minutes, more rarely if that takes long; an ended one once more, and then daily,
because people may still write into its folder. Rows need no rights: the platform makes them from what jobs wrote.
"""

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import F, QuerySet
from django.db.models.functions import Least
from django.utils.translation import gettext as _

from hekla.apps import due_work
from hekla.apps.jobs.models import Job
from hekla.apps.tenancy.models import Tenant
from hekla.apps.usage import selectors
from hekla.apps.usage.models import JobFolder
from hekla.apps.usage.selectors import GIB
from hekla.domain.errors import Refused

_RUNNING, _ENDED, _CLAIM = timedelta(minutes=10), timedelta(days=1), timedelta(minutes=5)
_SHARE = 200
"""A folder is measured for at most this part of the time."""


class FilesFull(Refused):
    """The tenant has as many files as it may have."""

    code = "files_full"


def list_jobs(jobs: Collection[Job], *, now: datetime) -> None:
    """Put these jobs on the work list, if they are not on it yet."""
    rows = [JobFolder(job=job, tenant_id=job.tenant_id, due_at=now) for job in {job.pk: job for job in jobs}.values()]
    JobFolder.objects.bulk_create(rows, ignore_conflicts=True)


def measure_work() -> list[QuerySet[Any, Any]]:
    """Folders that are due (see `due_work`)."""
    return [JobFolder.objects.filter(due_at__lte=due_work.present())]


def claim(*, now: datetime, limit: int) -> list[JobFolder]:
    """The folders to measure next, the most overdue first; nobody else gets them for some minutes.

    Those of cleaned jobs are forgotten instead: their files are gone.
    """
    with transaction.atomic():
        due = JobFolder.objects.filter(due_at__lte=now).order_by("due_at", "pk").defer("job__spec")
        due = due.select_related("job__cluster", "job__tenant").select_for_update(skip_locked=True, of=("self",))
        folders = list(due[:limit])
        gone = [folder.pk for folder in folders if folder.job.cleaned_at]
        JobFolder.objects.filter(pk__in=gone).delete()
        found = [folder for folder in folders if not folder.job.cleaned_at]
        JobFolder.objects.filter(pk__in=[folder.pk for folder in found]).update(due_at=now + _CLAIM)
    return found


def release(folders: Sequence[JobFolder], *, now: datetime) -> None:
    """Give claimed folders back that were not measured."""
    JobFolder.objects.filter(pk__in=[folder.pk for folder in folders]).update(due_at=now)


def postpone(folder: JobFolder, *, now: datetime) -> None:
    """Measure it later: its cluster does not know its size now."""
    JobFolder.objects.filter(pk=folder.pk).update(due_at=now + (_ENDED if folder.job.is_final else _RUNNING))


def note_upload(job: Job, size: int, *, now: datetime) -> None:
    """Count a new file of this size until the folder is measured next, in ten minutes at most."""
    due_at = Least("due_at", now + _RUNNING)
    JobFolder.objects.filter(job=job).update(size=F("size") + size, due_at=due_at)


def measure_soon(jobs: Collection[int], *, now: datetime) -> None:
    """Measure the folders of these jobs (primary keys) now: something deleted files of them."""
    JobFolder.objects.filter(job__in=jobs, due_at__gt=now).update(due_at=now)


def store(folder: JobFolder, size: int, files: int, *, is_complete: bool, took: timedelta, now: datetime) -> None:
    """Store what was measured, and plan the next time."""
    pause = max(_ENDED if folder.job.is_final else _RUNNING, took * _SHARE)
    values = {"size": size, "files": files, "is_complete": is_complete, "measured_at": now, "due_at": now + pause}
    JobFolder.objects.filter(pk=folder.pk).update(**values)


def require_room(tenant: Tenant, size: int) -> None:
    """Raises FilesFull if the tenant has a limit of files, and would have more with these bytes."""
    if tenant.files_gib is None:
        return
    held = selectors.files_of(tenant).size
    if held + size > tenant.files_gib * GIB:
        sentence = _(
            "The files of tenant %(name)s take %(held).1f GiB. Its limit is %(most)d GiB. Delete ended jobs first."
        )
        raise FilesFull(sentence % {"name": tenant.name, "held": held / GIB, "most": tenant.files_gib})
