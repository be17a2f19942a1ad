"""The tables of flows and templates."""

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

_STATES = {FlowPhase.SUCCEEDED: "done", FlowPhase.FAILED: "failed"}


def _steps(row: dict[str, Any]) -> SafeString:
    state, words = _STATES.get(row["flow"].phase, "running"), f"{row['done']} / {row['all']}"
    return html.progress(row["done"], row["all"], label=_("Completed steps"), state=state, words=words)


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
    phase = ListColumn(gettext_lazy("State"), sort="phase", cell=lambda row: html.phase(row["flow"].phase))
    steps = ListColumn(gettext_lazy("Steps"), cell=_steps)
    started = ListColumn(
        gettext_lazy("Started"), sort="started_at", cell=lambda row: html.moment(row["flow"].started_at)
    )
    duration = ListColumn(
        gettext_lazy("Duration"),
        cell=lambda row: html.duration(row["flow"].started_at, row["flow"].ended_at),
        number=True,
    )


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
