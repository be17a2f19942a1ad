"""The columns of the list of jobs: the head, the cell, and the value in a CSV file.

Lists have hundreds of cells, so Python renders them (`frame/html`). All user input is escaped by `text`, there or in
`job_rows`.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from django.utils.functional import Promise
from django.utils.safestring import SafeString
from django.utils.translation import get_language, gettext
from django.utils.translation import gettext_lazy as _
from markupsafe import escape as text

from hekla.apps.job_history import explanations, messages, quota_messages
from hekla.apps.jobs import cards
from hekla.apps.jobs.models import Job
from hekla.domain.phases import JobPhase
from hekla.pages.frame import html

JobTableRow = Mapping[str, Any]
_STATES = {JobPhase.COMPLETED.value: "done", JobPhase.FAILED.value: "failed"}
_WITHOUT_REASON = frozenset({JobPhase.COMPLETED.value, JobPhase.RUNNING.value})


@dataclass(frozen=True, slots=True)
class Column:
    """A column. `cell`: the content for a row; `value`: the value of a job in a file; `sort`: the sort parameter in the
    URL; `number`: right-aligned.
    """

    name: str
    label: str | Promise
    cell: Callable[[JobTableRow], object]
    value: Callable[[Job], Any]
    sort: str = ""
    number: bool = False


def seconds_run(job: Job) -> int | str:
    """The run time in seconds; empty until the job has ended."""
    return int((job.finished_at - job.started_at).total_seconds()) if job.started_at and job.finished_at else ""


def _reason(row: JobTableRow) -> SafeString:
    """Why the job waits, or why it neither runs nor completed: one line, the whole of it as the tooltip."""
    job: Job = row["job"]
    if job.phase in _WITHOUT_REASON:
        return html.NOTHING
    words = text(explanations.first(job) or messages.of_job(job))
    return SafeString(f'<span class="one-line" title="{words}">{words}</span>') if words else html.NOTHING


def _gpus(row: JobTableRow) -> SafeString:
    """The cards that all pods request; those of several kinds with their resources."""
    counts = cards.requested(row["job"])
    if not counts:
        return html.NOTHING
    if len(counts) == 1:
        (amount,) = counts.values()
        return SafeString(f"{amount:g}")
    words = _(", ").join(f"{amount:g} {quota_messages.resource(name)}" for name, amount in counts.items())
    return SafeString(text(words))


def _pods(row: JobTableRow) -> SafeString:
    job = row["job"]
    return _progress(_STATES.get(job.phase, "running"), row["busy"], job.replicas, get_language())


@lru_cache(maxsize=4096)
def _progress(state: str, busy: int, pods: int, _language: str | None) -> SafeString:
    """Cached, since many jobs are alike."""
    return html.progress(busy, pods, label=gettext("Running or finished pods"), state=state, words=f"{busy} / {pods}")


def _queue(row: JobTableRow) -> SafeString:
    name = row["job"].queue.name
    return html.link("queues:detail", name, name)


def _tenant(row: JobTableRow) -> SafeString:
    tenant = row["job"].tenant
    return html.link("tenancy:detail", tenant.slug, str(tenant))


def _ran(row: JobTableRow) -> SafeString:
    return html.duration(row["job"].started_at, row["job"].finished_at)


def _instant(name: str) -> Callable[[JobTableRow], SafeString]:
    return lambda row: html.moment(getattr(row["job"], name))


COLUMNS = (
    Column("phase", _("State"), lambda row: html.phase(row["job"].phase), lambda job: job.phase, sort="phase"),
    Column("gpus", _("GPUs"), _gpus, lambda job: sum(cards.requested(job).values()) or "", number=True),
    Column("pods", _("Pods"), _pods, lambda job: job.replicas, sort="pods"),
    Column("queue", _("Queue"), _queue, lambda job: job.queue.name),
    Column("tenant", _("Tenant"), _tenant, lambda job: job.tenant.slug),
    Column("owner", _("Owner"), lambda row: row["job"].owner, lambda job: job.owner.username),
    Column("cluster", _("Cluster"), lambda row: row["job"].cluster, lambda job: job.cluster.name),
    Column("kind", _("Kind"), lambda row: row["job"].kind, lambda job: job.kind),
    Column(
        "priority",
        _("Priority"),
        lambda row: row["job"].priority,
        lambda job: job.priority,
        sort="priority",
        number=True,
    ),
    Column("submitted", _("Submitted"), _instant("submitted_at"), lambda job: job.submitted_at, sort="submitted"),
    Column("started", _("Started"), _instant("started_at"), lambda job: job.started_at),
    Column("finished", _("Finished"), _instant("finished_at"), lambda job: job.finished_at),
    Column("ran", _("Run time"), _ran, seconds_run, number=True),
    Column("reason", _("Reason"), _reason, lambda job: job.reason),
)
USUAL = ("phase", "gpus", "pods", "queue", "submitted", "ran", "reason")


def chosen(names: Collection[str]) -> list[Column]:
    """The columns of these names, in the order of the list; the default columns if none matches."""
    found = [column for column in COLUMNS if column.name in names]
    return found or [column for column in COLUMNS if column.name in USUAL]


def short() -> list[Column]:
    """The columns for lists of jobs on other pages, without sorting."""
    return [replace(column, sort="") for column in chosen(("phase", "gpus", "pods", "submitted", "reason"))]
