"""The page that previews the drain of a node, and drains it; and the progress of a drain on the page of the node."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext_lazy, ngettext
from django.views.decorators.http import require_http_methods

from hekla.apps.accounts import services as accounts
from hekla.apps.accounts.roles import Permission
from hekla.apps.clusters import selectors
from hekla.apps.clusters.models import MAX_DRAIN_REASON, Node
from hekla.apps.forms import attach
from hekla.apps.jobs import selectors as jobs
from hekla.apps.jobs import services
from hekla.apps.jobs.models import Job
from hekla.domain.errors import HeklaError
from hekla.lib import clock
from hekla.pages.frame.people import person
from hekla.simulation import drain_descriptions
from hekla.simulation.draining import DrainedJob, DrainPreview, preview_drain

_MOST_ROWS, _LONGEST_TOKEN = 100, 40_000


class DrainForm(forms.Form):
    """Why a node is drained."""

    reason = forms.CharField(
        label=gettext_lazy("Reason"),
        max_length=MAX_DRAIN_REASON,
        help_text=gettext_lazy("The owners of the jobs see it, for example “new power supply until Friday”."),
    )
    token = forms.CharField(required=False, max_length=_LONGEST_TOKEN, widget=forms.HiddenInput)

    def show(self, preview: DrainPreview | None) -> None:
        """Send this preview with the form, instead of the one before."""
        token = preview.token if preview else ""
        if self.is_bound:
            self.data = {**self.data, "token": token}
        else:
            self.initial["token"] = token


@dataclass(frozen=True, slots=True)
class DrainRow:
    """A job in the preview, with its sentences."""

    found: DrainedJob
    fate: str
    lost: str
    when: str

    @property
    def job(self) -> Job:
        return self.found.job


@dataclass(frozen=True, slots=True)
class DrainProgress:
    """A drain on the page of its node. `left`: how many of its pods have not ended; `external`: pods that stay."""

    since: datetime
    reason: str
    left: int
    external: int

    @property
    def is_done(self) -> bool:
        return not self.left


@require_http_methods(["GET", "POST"])
def drain(request: HttpRequest, node_id: int) -> HttpResponse:
    """Preview the drain of a node, and drain it."""
    user = person(request)
    accounts.require(user, Permission.MANAGE_CLUSTERS)
    node, form = selectors.node(node_id), DrainForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        try:
            done = services.drain(node, **form.cleaned_data, user=user, now=clock.now())
        except HeklaError as error:
            attach(form, error)
        else:
            sentence = ngettext(
                "%(node)s is drained. %(n)d pod is evicted.", "%(node)s is drained. %(n)d pods are evicted.", done.pods
            )
            messages.success(request, sentence % {"node": node.name, "n": done.pods})
            return redirect("clusters:node", node.pk)
    previewed = _previewed(node, request)
    form.show(previewed.get("preview"))
    return render(request, "clusters/drain.html", {"node": node, "form": form, **previewed})


def _previewed(node: Node, request: HttpRequest) -> dict[str, Any]:
    try:
        found = preview_drain(node, user=person(request))
    except HeklaError as error:
        return {"problem": error.message}
    rows = _rows(found)
    return {
        "preview": found,
        "rows": rows[:_MOST_ROWS],
        "hidden": max(0, len(rows) - _MOST_ROWS),
        "sessions": sum(row.found.is_session for row in rows),
        "homeless": sum(row.found.goes_on and not row.found.fits for row in rows) + len(found.stranded),
        "stranded": found.stranded[:_MOST_ROWS],
    }


def _rows(found: DrainPreview) -> list[DrainRow]:
    words = drain_descriptions
    return [DrainRow(one, words.fate(one), words.lost(one), words.when(one, found.at)) for one in found.jobs]


def progress(node: Node) -> DrainProgress | None:
    """How far the drain of a node is; None if it is not drained."""
    if node.draining_since is None:
        return None
    own, external = jobs.pods_left_on(node)
    return DrainProgress(node.draining_since, node.drain_reason, own, external)
