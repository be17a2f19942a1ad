"""The table of experiments."""

from django.template.defaultfilters import filesizeformat
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy

from hekla.apps.policy_lab import problems
from hekla.apps.policy_lab.models import LabRun, LabTrace
from hekla.pages.frame import html
from hekla.pages.frame.tables import ListColumn, ListTable, named, noted

STATES = {
    LabRun.State.WAITING: "waiting",
    LabRun.State.RUNNING: "running",
    LabRun.State.FINISHED: "done",
    LabRun.State.FAILED: "failed",
    LabRun.State.CANCELLED: "stopped",
}
"""The colour of each state."""


def _state(row: LabRun) -> SafeString:
    return noted(
        html.badge(STATES[LabRun.State(row.state)], str(row.get_state_display())),
        problems.sentence(row) or (f"{row.progress:.0%}" if row.state == LabRun.State.RUNNING else ""),
    )


class ExperimentsTable(ListTable):
    """Experiments of the policy lab."""

    label = gettext_lazy("Experiments")

    title = ListColumn(
        gettext_lazy("Title"), sort="title", cell=lambda row: named("policy_lab:detail", row.uid, str(row))
    )
    cluster = ListColumn(gettext_lazy("Cluster"), sort="cluster__name", cell=lambda row: row.cluster.name)
    trace = ListColumn(gettext_lazy("Trace"), sort="trace_name", cell=lambda row: row.trace_name or "–")
    starts_at = ListColumn(gettext_lazy("From"), sort="starts_at", cell=lambda row: html.moment(row.starts_at, "yes"))
    ends_at = ListColumn(gettext_lazy("Until"), sort="ends_at", cell=lambda row: html.moment(row.ends_at, "yes"))
    state = ListColumn(gettext_lazy("State"), sort="state", cell=_state)
    created_at = ListColumn(gettext_lazy("Requested"), sort="created_at", cell=lambda row: html.moment(row.created_at))
    created_by = ListColumn(gettext_lazy("By"), sort="created_by__username", cell=lambda row: row.created_by or "–")


def _size(row: LabTrace) -> str:
    return filesizeformat(row.size)


class TracesTable(ListTable):
    """Uploaded traces."""

    label = gettext_lazy("Traces")

    name = ListColumn(gettext_lazy("Name"), sort="name", cell=lambda row: named("policy_lab:trace", row.uid, row.name))
    format = ListColumn(gettext_lazy("Format"), sort="format", cell=lambda row: row.format)
    jobs = ListColumn(gettext_lazy("Jobs"), sort="jobs", cell=lambda row: f"{row.jobs:,}", number=True)
    starts_at = ListColumn(gettext_lazy("From"), sort="starts_at", cell=lambda row: html.moment(row.starts_at, "yes"))
    ends_at = ListColumn(gettext_lazy("Until"), sort="ends_at", cell=lambda row: html.moment(row.ends_at, "yes"))
    size = ListColumn(gettext_lazy("Size"), sort="size", cell=_size, number=True)
    created_at = ListColumn(gettext_lazy("Uploaded"), sort="created_at", cell=lambda row: html.moment(row.created_at))
    owner = ListColumn(gettext_lazy("By"), sort="owner__username", cell=lambda row: row.owner or "–")
