"""The pages of clusters: the list, one cluster with its health and credentials, and the forms that add, change and try
one.

Problems that the backend finds in the input are shown at their fields. A cluster that does not answer, or where
permissions are missing, is saved only if the person confirms it.
"""

from collections.abc import Mapping
from contextlib import nullcontext
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from hekla.apps.accounts import selectors as people
from hekla.apps.accounts import services as accounts
from hekla.apps.accounts.models import User
from hekla.apps.accounts.roles import Permission
from hekla.apps.accounts.services import actor_of
from hekla.apps.clusters import leases, notices, selectors, services
from hekla.apps.clusters.models import Cluster
from hekla.apps.forms import attach, form_page
from hekla.backends import registry
from hekla.backends.base import Health
from hekla.cluster_access import validation
from hekla.cluster_access.health import is_healthy
from hekla.cluster_access.validation import ClusterDraft
from hekla.domain.errors import HeklaError, NotFound, Refused
from hekla.lib import clock
from hekla.pages.clusters import external_pods, health, keys, overview
from hekla.pages.clusters.forms import ClusterAccessForm, ClusterChangeForm, ClusterForm, MetricsTokenForm
from hekla.pages.clusters.settings_form import entry, summary
from hekla.pages.clusters.settings_form.entry import SettingsEntry
from hekla.pages.clusters.tables import CLUSTER_SEARCH, ClusterRow, ClustersTable, without_values
from hekla.pages.frame.people import person
from hekla.pages.frame.tables import listing, listing_of
from hekla.pages.queues import figures
from hekla.scheduling import occupancy

_SECRET = ("secret_kubeconfig", "token", "secret_carried")


@require_safe
def show_all(request: HttpRequest) -> HttpResponse:
    """List all clusters."""
    accounts.require(person(request), Permission.MANAGE_CLUSTERS)
    since, rows, apart = _rows(person(request), request.GET)
    clusters = listing(request, ClustersTable, rows, CLUSTER_SEARCH, **_options(rows))
    return render(request, "clusters/list.html", {"since": since, "clusters": clusters, "apart": apart})


@require_safe
def show(request: HttpRequest, name: str) -> HttpResponse:
    """Show one cluster: its health, and how it is reached."""
    accounts.require(person(request), Permission.MANAGE_CLUSTERS)
    return render(request, "clusters/detail.html", parts(name, person(request)))


def all_parts(user: User, query: QueryDict) -> dict[str, Any]:
    """The live parts of the list of clusters. Raises NotFound for people who may not see it."""
    _since, rows, apart = _rows(user, query)
    return {"clusters": listing_of(query, ClustersTable, rows, CLUSTER_SEARCH, **_options(rows)), "apart": apart}


def _options(rows: list[ClusterRow]) -> dict[str, Any]:
    """How the table is made: without columns that have no values."""
    return {"exclude": without_values(rows), "facts": {"now": clock.now()}}


def _rows(user: User, query: QueryDict) -> tuple[int, list[ClusterRow], int]:
    """The number of the last event, the clusters as of that event, and how many of demonstrations are left out."""
    _require_sight(user)
    whole = occupancy.now()
    uses = overview.use_by_cluster(whole)
    every = [
        ClusterRow(
            cluster,
            lease,
            health.of_row(cluster, getattr(cluster, "health", None)),
            uses.get(cluster.pk, overview.ClusterUse()),
        )
        for cluster, lease in selectors.with_leases()
    ]
    has_all = query.get("demonstrations") == "yes"
    rows = [row for row in every if has_all or not figures.is_of_demonstration(row.cluster)]
    return whole.number, rows, len(every) - len(rows)


def parts(name: str, user: User) -> dict[str, Any]:
    """The live parts of a cluster's page. Raises NotFound for people who may not see it."""
    _require_sight(user)
    whole, cluster = occupancy.now(), selectors.get(name)
    lease = getattr(cluster, "lease", None)
    return {
        **overview.of(cluster, whole, user),
        "since": whole.number,
        "now": clock.now(),
        "cluster": cluster,
        "config": entry.document(cluster.config),
        "settings": summary.settings_of(cluster.kind, cluster.config),
        "lease": lease,
        "notices": [*filter(None, [notices.of_cluster(cluster)])],
        "turned_at": leases.renewed_at(lease) if lease else None,
        "lag": max(0, round(leases.unrenewed_for(cluster, lease, now=clock.now()).total_seconds())),
        "key": selectors.key(cluster),
        "external_pods": external_pods.of(cluster),
        "tells_health": registry.reports_health(cluster.kind),
        "health": health.of_row(cluster, getattr(cluster, "health", None)),
    }


def _require_sight(user: User) -> None:
    if not people.may(user, Permission.MANAGE_CLUSTERS):
        raise NotFound(_("Unknown page."))


@sensitive_post_parameters(*_SECRET)
@require_http_methods(["GET", "POST"])
def create(request: HttpRequest) -> HttpResponse:
    """Add a cluster."""
    accounts.require(person(request), Permission.MANAGE_CLUSTERS)
    kind = request.POST.get("kind") or request.GET.get("kind", "")
    settings = _settings(request, kind, {})
    form = ClusterForm(settings.data, request.FILES or None, kinds=_kinds(), initial={"kind": kind})
    return _answer(request, form, settings, None) or _page(
        request, form, settings, title=_("Add cluster"), submit=_("Add")
    )


@sensitive_post_parameters(*_SECRET)
@require_http_methods(["GET", "POST"])
def edit(request: HttpRequest, name: str) -> HttpResponse:
    """Change a cluster. A cluster that does not answer can still be paused."""
    accounts.require(person(request), Permission.MANAGE_CLUSTERS)
    cluster = selectors.get(name)
    settings = _settings(request, cluster.kind, cluster.config)
    form = ClusterChangeForm(settings.data, request.FILES or None, instance=selectors.get(name))
    return _answer(request, form, settings, cluster) or _page(
        request, form, settings, title=name, submit=_("Save"), cluster=cluster
    )


def _settings(request: HttpRequest, kind: str, stored: Mapping[str, Any]) -> SettingsEntry:
    return entry.read(kind, request.POST, stored) if request.method == "POST" else entry.unbound(kind, stored)


@require_POST
def remove_key(request: HttpRequest, name: str) -> HttpResponse:
    """Remove the stored credentials of a cluster."""
    accounts.require(person(request), Permission.MANAGE_CLUSTERS)
    services.remove_key(selectors.get(name), actor=actor_of(person(request)), now=clock.now())
    messages.success(request, _("Credentials removed."))
    return redirect("clusters:detail", name)


@require_http_methods(["GET", "POST"])
def set_metrics_token(request: HttpRequest, name: str) -> HttpResponse:
    """Set the token for the Prometheus of a cluster, or delete it by an empty field."""
    accounts.require(person(request), Permission.MANAGE_CLUSTERS)
    cluster, form = selectors.get(name), MetricsTokenForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        token = form.cleaned_data["secret_token"]
        try:
            services.set_metrics_token(cluster, token, actor=actor_of(person(request)), now=clock.now())
        except Refused as error:
            form.add_error("secret_token", error.message)
        else:
            messages.success(request, _("Token stored.") if token else _("Token removed."))
            return redirect("clusters:detail", name)
    cancel = reverse("clusters:detail", args=[name])
    return form_page(request, form, title=_("Token for Prometheus"), submit=_("Save"), cancel=cancel)


@require_POST
def remove(request: HttpRequest, name: str) -> HttpResponse:
    """Remove a cluster that has no queues."""
    accounts.require(person(request), Permission.MANAGE_CLUSTERS)
    try:
        services.remove(selectors.get(name), actor=actor_of(person(request)), now=clock.now())
    except Refused as error:
        messages.error(request, error.message)
        return redirect("clusters:detail", name)
    messages.success(request, _("Removed cluster %s.") % name)
    return redirect("clusters:list")


def _kinds() -> list[tuple[str, str]]:
    return [(name, _(label)) for name, label in registry.choices()]


def _answer(
    request: HttpRequest, form: ClusterAccessForm, settings: SettingsEntry, cluster: Cluster | None
) -> HttpResponse | None:
    """The response to a valid form; None if the page shows the form again, with problems or the result of the check."""
    if request.method != "POST":
        return None
    if settings.is_unfinished:
        form.drop_problems()
        return None
    if settings.problem:
        attach(form, settings.problem)
    if not form.is_valid() or not settings.is_valid:
        return None
    try:
        return _Attempt(request, form, cluster).answer()
    except HeklaError as error:
        attach(form, error)
    return None


class _Attempt:
    """One submission of the form."""

    def __init__(self, request: HttpRequest, form: ClusterAccessForm, cluster: Cluster | None) -> None:
        self._request, self._form, self._cluster = request, form, cluster
        self._user, self._now = person(request), clock.now()

    def answer(self) -> HttpResponse | None:
        """Check the cluster, and save it unless this is a trial. Raises HeklaError."""
        draft, is_trial = self._draft(), "try" in self._request.POST
        found = validation.probe(draft, always=is_trial)
        if is_trial:
            self._hand_back(draft, found)
            return None
        if found and not is_healthy(found) and "anyway" not in self._request.POST:
            self._hand_back(draft, found)
            validation.require_healthy(draft, found)
        with self._form.saving() if isinstance(self._form, ClusterChangeForm) else nullcontext():
            validation.save(draft, found, by=self._user, now=self._now)
        messages.success(self._request, self._success_message())
        return redirect("clusters:list")

    def _draft(self) -> ClusterDraft:
        """The cluster as the form describes it. Raises Invalid for unusable credentials."""
        kind = self._cluster.kind if self._cluster else self._form.cleaned_data["kind"]
        if kind != Cluster.Kind.KUBERNETES:  # only these need credentials
            return ClusterDraft(self._form.row(), self._cluster)
        has_key = self._cluster is not None and selectors.key(self._cluster) is not None
        requested = keys.requested_key(self._form, self._user, has_key=has_key, now=self._now)
        field = keys.field_of(self._form.cleaned_data["access"])
        return ClusterDraft(self._form.row(), self._cluster, requested.key, requested.drops, field)

    def _hand_back(self, draft: ClusterDraft, found: Health | None) -> None:
        """Show the result in the form, and carry the credentials over, so that people need not enter them again."""
        self._form.found = health.of_answer(found, draft.config) if found else None
        if draft.key:
            access = self._form.cleaned_data["access"]
            self._form.carry(keys.carry(draft.key, access, self._user, now=self._now))
            self._form.carried = draft.key

    def _success_message(self) -> str:
        return _("Saved.") if self._cluster else _("Cluster added. Now add a queue.")


def _page(
    request: HttpRequest,
    form: ClusterAccessForm,
    settings: SettingsEntry,
    *,
    title: str,
    submit: str,
    cluster: Cluster | None = None,
) -> HttpResponse:
    context = {"form": form, "settings": settings, "title": title, "submit": submit, "cluster": cluster}
    context |= {"kind": cluster.kind if cluster else form["kind"].value()}
    context |= {"key": selectors.key(cluster) if cluster else None, "cancel": reverse("clusters:list")}
    return render(request, "clusters/form.html", context)
