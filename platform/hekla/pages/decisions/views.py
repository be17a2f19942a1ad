"""Pages of the scheduler's decisions: the cycles of a cluster, one cycle, and how it judged one job.

For operators: they show the jobs of all tenants.
"""

from collections.abc import Iterable
from itertools import islice
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from hekla.apps.accounts import services as accounts
from hekla.apps.accounts.roles import Permission
from hekla.apps.clusters import selectors as clusters
from hekla.apps.cycle_records import selectors, services
from hekla.apps.cycle_records.models import CycleRecord
from hekla.apps.job_history import labels
from hekla.domain.errors import Invalid, NotFound, Refused
from hekla.engine.cycle_trace import PodExamination
from hekla.pages.decisions.tables import CyclesTable
from hekla.pages.frame.people import person
from hekla.pages.frame.tables import listing
from hekla.scheduling import cycle_records
from hekla.simulation import cycle_report
from hekla.simulation.cycle_report import Reasons

_MAX_PLUGINS = 12


@require_safe
def show_all(request: HttpRequest) -> HttpResponse:
    """List the recorded cycles of a cluster, the newest first."""
    user = person(request)
    accounts.require(user, Permission.MANAGE_CLUSTERS)
    every = list(clusters.all_clusters())
    cluster = next((one for one in every if one.name == request.GET.get("cluster")), every[0] if every else None)
    if cluster is None:
        return redirect("clusters:list")
    context = {
        "clusters": every,
        "cluster": cluster,
        "cycles": listing(request, CyclesTable, selectors.records(user, cluster)),
        "totals": selectors.totals(user, cluster),
        "omitted": [(CycleRecord.Omission(name).label, n) for name, n in selectors.omitted(user, cluster).items()],
        "days": services.MAX_AGE.days,
        "most_bytes": services.MAX_BYTES,
    }
    return render(request, "decisions/list.html", context)


@require_safe
def show(request: HttpRequest, record_id: int) -> HttpResponse:
    """Show one cycle: what each action did, and who waits why. The engine runs on it again for this."""
    row = selectors.record(person(request), record_id)
    context: dict[str, Any] = {"row": row}
    try:
        found = cycle_report.report_of(row)
    except (NotFound, Refused, Invalid) as error:
        context["problem"] = str(error)
    else:
        waiting = [(one.job, _sentences(one.reasons)) for one in found.waiting]
        context |= {"report": found, "waiting": waiting}
    return render(request, "decisions/detail.html", context)


@require_safe
def show_job(request: HttpRequest, record_id: int, job: int) -> HttpResponse:
    """Show how a cycle judged a job: nodes with scores and vetoes, and victims."""
    row = selectors.record(person(request), record_id)
    context: dict[str, Any] = {"row": row}
    try:
        found = cycle_report.job_report_of(row, str(job))
    except (Refused, Invalid) as error:
        context["problem"] = str(error)
    else:
        context |= {
            "report": found,
            "sentences": _sentences(found.reasons),
            "examinations": [(one, _plugins(one), [*_rows(one)], [*_refused(one)]) for one in found.examinations],
        }
    return render(request, "decisions/job.html", context)


@require_safe
def download(request: HttpRequest, record_id: int) -> HttpResponseBase:
    """The cycle as one JSON file."""
    return cycle_records.file_of(selectors.record(person(request), record_id))


def _sentences(reasons: Reasons) -> list[str]:
    return [labels.reason(reason) for reason in reasons]


def _plugins(examined: PodExamination) -> list[str]:
    """The plugins with a score of their own, in the order of the policy."""
    found = dict.fromkeys(name for node in examined.nodes for name, score in node.scores.items() if score)
    return [*islice(found, _MAX_PLUGINS)]


def _rows(examined: PodExamination) -> Iterable[dict[str, Any]]:
    """The nodes, with the scores in the order of `_plugins`."""
    plugins = _plugins(examined)
    for node in examined.nodes:
        yield {
            "node": node,
            "scores": [(name, None if node.total is None else node.scores.get(name, 0.0)) for name in plugins],
            "why": [
                *(f"{name}: {why}" for name, why in node.vetoes),
                *(_("too little %s") % one for one in node.short),
            ],
        }


def _refused(examined: PodExamination) -> Iterable[tuple[str, int]]:
    for (plugin, reason), count in examined.refused.items():
        yield (f"{plugin}: {reason}" if plugin else reason), count
