"""Pages of the policy lab: experiments, the form of a new one, and one with its progress and result.

For operators: they show the workload of all tenants.
"""

from typing import Any
from uuid import UUID

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from hekla.apps.accounts import services as accounts
from hekla.apps.accounts.roles import Permission
from hekla.apps.clusters import selectors as clusters
from hekla.apps.clusters.models import Cluster
from hekla.apps.forms import attach
from hekla.apps.policy_lab import problems, selectors, services
from hekla.apps.policy_lab.models import LabRun, LabTrace
from hekla.apps.queues import selectors as queues
from hekla.domain.errors import HeklaError, NotFound
from hekla.engine.model import QueueSpec
from hekla.lib import clock
from hekla.lib.diff import diff_lines
from hekla.pages.frame.people import person
from hekla.pages.frame.tables import listing
from hekla.pages.policy_lab import figures
from hekla.pages.policy_lab.forms import ExperimentForm, chosen_cluster
from hekla.pages.policy_lab.tables import STATES, ExperimentsTable
from hekla.scheduling import policies
from hekla.simulation import policy_lab

_TABS = 20
"""Traces that the form of an experiment lists."""


@require_safe
def show_all(request: HttpRequest) -> HttpResponse:
    """List the experiments, the newest first."""
    found = listing(request, ExperimentsTable, selectors.runs(person(request)))
    return render(request, "policy_lab/list.html", {"experiments": found, "most": services.MAX_RUNS})


@require_http_methods(["GET", "POST"])
def create(request: HttpRequest) -> HttpResponse:
    """The form of a new experiment; a POST starts it."""
    user = person(request)
    accounts.require(user, Permission.MANAGE_CLUSTERS)
    every = [one for one in clusters.all_clusters() if not one.leads_jobs]
    cluster = chosen_cluster(every, request.GET.get("cluster"))
    if cluster is None:
        return redirect("clusters:list")
    trace = _trace(request)
    form = _form(request, cluster, trace)
    if request.method == "POST" and form.is_valid():
        now = clock.now()
        starts_at, ends_at = form.period(now)
        try:
            found = policy_lab.start(
                cluster,
                title=form.cleaned_data["title"],
                starts_at=starts_at,
                ends_at=ends_at,
                change=form.change(),
                user=user,
                now=now,
                trace=trace,
            )
        except HeklaError as error:
            attach(form, error)
        else:
            return redirect("policy_lab:detail", found.uid)
    context = {"form": form, "cluster": cluster, "clusters": every, "trace": trace}
    return render(request, "policy_lab/form.html", context | {"traces": selectors.traces(user)[:_TABS]})


def _trace(request: HttpRequest) -> LabTrace | None:
    """The trace that the address names; None for recorded jobs. Raises NotFound."""
    text = request.GET.get("trace")
    if not text:
        return None
    try:
        uid = UUID(text)
    except ValueError as error:
        raise NotFound(_("Unknown trace. Maybe it was deleted.")) from error
    return selectors.trace(person(request), uid)


def _form(request: HttpRequest, cluster: Cluster, trace: LabTrace | None) -> ExperimentForm:
    return ExperimentForm(
        request.POST or None,
        policy=policies.text_in_force(cluster),
        queues=list(map(QueueSpec, trace.queues)) if trace else list(queues.of_cluster(cluster)),
        nodes=clusters.nodes(cluster),
        has_period=trace is None,
    )


@require_safe
def show(request: HttpRequest, uid: UUID) -> HttpResponse:
    """Show an experiment: its state, what it changes, and its result."""
    row = selectors.get(person(request), uid)
    context = _context(row) | {"row": row, "changes": figures.changes(row.change)}
    if row.change.get("policy"):
        context["difference"] = diff_lines(row.policy, row.change["policy"])
    return render(request, "policy_lab/detail.html", context)


@require_safe
def state(request: HttpRequest, uid: UUID) -> HttpResponse:
    """The state of an experiment, which its page polls until it is over."""
    return render(request, "policy_lab/_state.html", _context(selectors.get(person(request), uid)))


def _context(row: LabRun) -> dict[str, Any]:
    context: dict[str, Any] = {
        "row": row,
        "colour": STATES[LabRun.State(row.state)],
        "percent": row.progress * 100,
        "problem": problems.sentence(row),
    }
    if row.result is None:
        return context
    return context | {
        "pictures": figures.pictures(row.result),
        "heads": figures.heads(row.result),
        "rows": figures.rows(row.result),
        "queues": figures.groups(row.result, "queues"),
        "tenants": figures.groups(row.result, "tenants"),
        "trust": figures.trust(row.result),
        "notes": figures.notes(row.result),
        "predictions": figures.predictions(row.result),
        "plan": figures.plan(row.result),
        "trials": figures.trials(row.result),
        "differing": figures.differing(row.result),
        "differing_count": figures.differing_count(row.result),
    }


@require_POST
def cancel(request: HttpRequest, uid: UUID) -> HttpResponse:
    """Cancel an experiment."""
    services.cancel(selectors.get(person(request), uid), user=person(request), now=clock.now())
    return redirect("policy_lab:detail", uid)


@require_POST
def delete(request: HttpRequest, uid: UUID) -> HttpResponse:
    """Delete an experiment that is over."""
    services.delete(selectors.get(person(request), uid), user=person(request), now=clock.now())
    messages.success(request, _("Deleted."))
    return redirect("policy_lab:list")
