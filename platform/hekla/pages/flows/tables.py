"""The tables of flows and templates."""

from functools import cached_property
from typing import Any

from django.http import HttpRequest, QueryDict
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django_filters import ChoiceFilter

from hekla.apps.accounts.models import User
from hekla.apps.flows import overview, selectors
from hekla.apps.flows.models import JobTemplate
from hekla.apps.job_history import labels
from hekla.domain.phases import FlowPhase
from hekla.pages.frame import html
from hekla.pages.frame.tables import ListColumn, Listing, ListTable, OwnedFilter, listing, listing_of, named

_Row = dict[str, Any]
_STATES = {FlowPhase.SUCCEEDED: "done", FlowPhase.FAILED: "failed"}


def _tasks(template: JobTemplate) -> str:
    tasks = template.spec.get("tasks", ())
    return _(", ").join(f"{task.get('name', '')} × {task.get('replicas') or 1}" for task in tasks)


def _owner(thing: Any) -> str:  # noqa: ANN401  (a flow, a template)
    return f"{thing.owner} · {thing.tenant}"


class FlowsTable(ListTable):
    """The flows that the reader may see."""

    label = gettext_lazy("Flows")
    suggests = "flow"
    ids = "row-{0[flow].uid}"

    name = ListColumn(
        gettext_lazy("Flow"),
        sort="name",
        cell=lambda row: named("flows:detail", row["flow"].uid, row["flow"].name, _owner(row["flow"])),
    )
    phase = ListColumn(gettext_lazy("State"), sort="phase")
    steps = ListColumn(gettext_lazy("Steps"))
    started = ListColumn(gettext_lazy("Started"), sort="started_at")
    duration = ListColumn(gettext_lazy("Duration"), number=True)

    @cached_property
    def _completed(self) -> str:
        return _("Completed steps")

    def render_phase(self, record: _Row) -> SafeString:
        """The state."""
        return html.phase_in(self.language, record["flow"].phase)

    def render_steps(self, record: _Row) -> SafeString:
        """How many steps are completed."""
        done, every, state = record["done"], record["all"], _STATES.get(record["flow"].phase, "running")
        return html.progress(done, every, label=self._completed, state=state, words=f"{done} / {every}")

    def render_started(self, record: _Row) -> SafeString:
        """When it was started."""
        return self.moment_of(record["flow"].started_at)

    def render_duration(self, record: _Row) -> SafeString:
        """How long it took, or takes so far."""
        return self.duration_of(record["flow"].started_at, record["flow"].ended_at)


class FlowsFilter(OwnedFilter):
    """The filter of owned things, plus the state."""

    phase = ChoiceFilter(
        label=gettext_lazy("State"),
        empty_label=gettext_lazy("All states"),
        choices=lambda: [(phase.value, labels.phase(phase.value)) for phase in FlowPhase],
    )


class TemplatesTable(ListTable):
    """The templates that the reader may see."""

    label = gettext_lazy("Templates")
    suggests = "template"

    name = ListColumn(
        gettext_lazy("Template"),
        sort="name",
        cell=lambda one: named("flows:template", one.uid, one.name, _owner(one)),
    )
    queue = ListColumn(gettext_lazy("Queue"), sort="spec__queue", cell=lambda one: one.spec.get("queue") or "default")
    tasks = ListColumn(gettext_lazy("Tasks"), cell=_tasks)
    changed = ListColumn(gettext_lazy("Changed"), sort="changed_at", cell=lambda one: html.moment(one.changed_at))


def flows_on(request: HttpRequest, user: User) -> Listing:
    """The page of the list for a request."""
    return listing(request, FlowsTable, selectors.visible_to(user).defer("spec"), FlowsFilter, rows=overview.rows)


def flows_for(query: QueryDict, user: User) -> Listing:
    """The same page for its live view."""
    return listing_of(query, FlowsTable, selectors.visible_to(user).defer("spec"), FlowsFilter, rows=overview.rows)
