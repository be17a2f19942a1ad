"""The columns of the list of jobs: what there is to choose from, and what each says in a file."""

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from typing import Any

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from hekla.apps.jobs.models import Job


@dataclass(frozen=True, slots=True)
class Column:
    """A column. `sort`: by which word of the address the list is sorted by it; `number`: aligned to the right."""

    name: str
    label: str | Promise
    value: Callable[[Job], Any]
    sort: str = ""
    number: bool = False


def seconds_run(job: Job) -> int | str:
    """How long it ran, once that is known."""
    return int((job.finished_at - job.started_at).total_seconds()) if job.started_at and job.finished_at else ""


COLUMNS = (
    Column("phase", _("State"), lambda job: job.phase, sort="phase"),
    Column("pods", _("Pods"), lambda job: job.replicas, sort="pods"),
    Column("queue", _("Queue"), lambda job: job.queue.name),
    Column("tenant", _("Tenant"), lambda job: job.tenant.slug),
    Column("owner", _("Owner"), lambda job: job.owner.username),
    Column("cluster", _("Cluster"), lambda job: job.cluster.name),
    Column("kind", _("Kind"), lambda job: job.kind),
    Column("priority", _("Priority"), lambda job: job.priority, sort="priority", number=True),
    Column("submitted", _("Submitted"), lambda job: job.submitted_at, sort="submitted"),
    Column("started", _("Started"), lambda job: job.started_at),
    Column("finished", _("Finished"), lambda job: job.finished_at),
    Column("ran", _("Run time"), seconds_run, number=True),
    Column("reason", _("Reason"), lambda job: job.reason),
)
USUAL = ("phase", "pods", "queue", "submitted", "ran")


def chosen(names: Collection[str]) -> list[Column]:
    """Those of these names, in the order of the list; the usual ones where none is named."""
    found = [column for column in COLUMNS if column.name in names]
    return found or [column for column in COLUMNS if column.name in USUAL]


def short() -> list[Column]:
    """What matters of jobs on the pages of other things, where nothing is sorted."""
    return [replace(column, sort="") for column in chosen(("phase", "pods", "submitted"))]
