"""The pages of clusters: all of them, one with its health and its key, and the forms that add, change and try one.

What its backend makes of what was typed is told at the field. A cluster that does not answer now, or where rights are
missing, is saved when that is asked for once more.
"""

import json
from collections.abc import Mapping
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
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
from hekla.apps.clusters import leases, selectors, services
from hekla.apps.clusters.forms import ClusterChangeForm, ClusterForm, WayForm
from hekla.apps.clusters.models import Cluster
from hekla.apps.forms import attach
from hekla.apps.outbox import selectors as outbox
from hekla.apps.outbox.services import unit_of_work
from hekla.apps.people import person
from hekla.apps.sentences import together
from hekla.backends import registry
from hekla.backends.base import BackendError, Health, Trouble
from hekla.backends.registry import open_backend
from hekla.controller.health import as_facts
from hekla.domain.errors import HeklaError, Invalid, NotFound, Problem
from hekla.lib import clock
from hekla.project import cluster_health, cluster_keys
from hekla.project.cluster_keys import Wish

_SECRET = ("secret_kubeconfig", "token", "secret_carried")


@require_safe
def show_all(request: HttpRequest) -> HttpResponse:
    """All clusters."""
    accounts.require(person(request), Permission.MANAGE_CLUSTERS)
    return render(request, "clusters/list.html", all_parts(person(request)))


@require_safe
def show(request: HttpRequest, name: str) -> HttpResponse:
    """One cluster: how it is, and how it is reached."""
    accounts.require(person(request), Permission.MANAGE_CLUSTERS)
    return render(request, "clusters/detail.html", parts(name, person(request)))


def all_parts(user: User) -> dict[str, Any]:
    """The live parts of the page of all clusters. Raises NotFound for who may not see it."""
    _require_sight(user)
    since, now = outbox.last_number(), clock.now()
    rows = [
        (cluster, lease, cluster_health.of_row(cluster, getattr(cluster, "health", None)))
        for cluster, lease in selectors.with_leases()
    ]
    return {"since": since, "rows": rows, "now": now}


def parts(name: str, user: User) -> dict[str, Any]:
    """The live parts of the page of a cluster. Raises NotFound for who may not see it."""
    _require_sight(user)
    since, cluster = outbox.last_number(), selectors.get(name)
    lease = selectors.lease(cluster)
    return {
        "since": since,
        "now": clock.now(),
        "cluster": cluster,
        "config": json.dumps(cluster.config, indent=2, ensure_ascii=False),
        "lease": lease,
        "turned_at": leases.renewed_at(lease) if lease else None,
        "key": selectors.key(cluster),
        "tells_health": registry.tells_health(cluster.kind),
        "health": cluster_health.of_row(cluster, selectors.health(cluster)),
    }


def _require_sight(user: User) -> None:
    if not people.may(user, Permission.MANAGE_CLUSTERS):
        raise NotFound("There is no such page.")


@sensitive_post_parameters(*_SECRET)
@require_http_methods(["GET", "POST"])
def create(request: HttpRequest) -> HttpResponse:
    """A new cluster."""
    accounts.require(person(request), Permission.MANAGE_CLUSTERS)
    form = ClusterForm(request.POST or None, request.FILES or None)
    return _answer(request, form, None) or _page(request, form, title=_("Add a cluster"), submit=_("Add"))


@sensitive_post_parameters(*_SECRET)
@require_http_methods(["GET", "POST"])
def edit(request: HttpRequest, name: str) -> HttpResponse:
    """Change a cluster. One that does not answer now can be paused all the same."""
    accounts.require(person(request), Permission.MANAGE_CLUSTERS)
    cluster = selectors.get(name)
    form = ClusterChangeForm(request.POST or None, request.FILES or None, instance=selectors.get(name))
    return _answer(request, form, cluster) or _page(request, form, title=name, submit=_("Save"), cluster=cluster)


@require_POST
def remove_key(request: HttpRequest, name: str) -> HttpResponse:
    """Forget the key to a cluster."""
    accounts.require(person(request), Permission.MANAGE_CLUSTERS)
    services.remove_key(selectors.get(name), actor=actor_of(person(request)), now=clock.now())
    messages.success(request, _("The key was removed."))
    return redirect("clusters:detail", name)


def _answer(request: HttpRequest, form: WayForm, cluster: Cluster | None) -> HttpResponse | None:
    """Do what was asked, if that can be done; else the form tells why, and what was found out."""
    if request.method != "POST" or not form.is_valid():
        return None
    try:
        return _Attempt(request, form, cluster).answer()
    except HeklaError as error:
        attach(form, error)
    return None


class _Attempt:
    """One sending of the form."""

    def __init__(self, request: HttpRequest, form: WayForm, cluster: Cluster | None) -> None:
        self._request, self._form, self._cluster = request, form, cluster
        self._user, self._now = person(request), clock.now()
        self._kind: str = cluster.kind if cluster else form.cleaned_data["kind"]
        self._config: dict[str, Any] = form.cleaned_data["config"]
        self._wish = Wish()

    def answer(self) -> HttpResponse | None:
        """Raises HeklaError for what cannot be done."""
        found = self._checked()
        if "try" in self._request.POST:
            self._hand_back(found)
            return None
        if found and not cluster_health.is_whole(found) and "anyway" not in self._request.POST:
            self._hand_back(found)
            self._refuse(found)
        cluster = self._saved()
        if found:
            services.observe_health(cluster, as_facts(found), asked_at=clock.now(), now=clock.now())
        messages.success(self._request, self._told())
        return redirect("clusters:list")

    def _checked(self) -> Health | None:
        """What the cluster answers; None where it is not asked. Raises Invalid for what can never lead anywhere."""
        if not registry.tells_health(self._kind):
            self._check_others()
            return None
        has_key = self._cluster is not None and selectors.key(self._cluster) is not None
        self._wish = cluster_keys.wish(self._form, self._user, has_key=has_key, now=self._now)
        is_the_same = self._cluster and self._cluster.config == self._config and not self._wish.changes
        if is_the_same and "try" not in self._request.POST:
            return None
        return _asked(self._kind, self._config, self._key_text(), self._field)

    def _check_others(self) -> None:
        if self._cluster is None or self._config != self._cluster.config:
            name = self._cluster.name if self._cluster else self._form.cleaned_data["name"]
            _require_answer(self._kind, name, self._config)

    def _key_text(self) -> str | None:
        if self._wish.key:
            return self._wish.key.text
        return None if self._cluster is None or self._wish.drops else selectors.backend_facts(self._cluster)["key"]

    @property
    def _field(self) -> str:
        return cluster_keys.field_of(self._form.cleaned_data["way"])

    def _hand_back(self, found: Health | None) -> None:
        """The form shows what was found, and carries the key on, so that nobody need give it again."""
        self._form.found = cluster_health.of_answer(found, self._config) if found else None
        if self._wish.key:
            way = self._form.cleaned_data["way"]
            self._form.carry(cluster_keys.carry(self._wish.key, way, self._user, now=self._now))
            self._form.carried = self._wish.key

    def _refuse(self, found: Health) -> None:
        if found.problem:
            raise Invalid([Problem(self._field, together([cluster_health.sentence(found.problem), found.detail]))])
        raise Invalid([Problem("", _("Not saved yet: something is missing in the cluster."))])

    def _saved(self) -> Cluster:
        asked: dict[str, Any] = {"actor": actor_of(self._user), "now": self._now}
        with unit_of_work():
            cluster = self._cluster or services.create(**self._form.row(), **asked)
            if self._cluster:
                services.change(cluster, self._form.row(), **asked)
            if self._wish.key:
                services.give_key(cluster, self._wish.key, by=self._user, **asked)
            if self._wish.drops:
                services.remove_key(cluster, **asked)
        return cluster

    def _told(self) -> str:
        return _("Saved.") if self._cluster else _("The cluster was added. Now give it a queue.")


def _page(
    request: HttpRequest, form: WayForm, *, title: str, submit: str, cluster: Cluster | None = None
) -> HttpResponse:
    context = {"form": form, "title": title, "submit": submit, "cluster": cluster}
    context |= {"key": selectors.key(cluster) if cluster else None, "cancel": reverse("clusters:list")}
    return render(request, "clusters/form.html", context)


def _asked(kind: str, config: Mapping[str, Any], key: str | None, field: str) -> Health:
    """What the cluster answers at this moment. Raises Invalid, at the field, for what can never lead there."""
    try:
        found = registry.health(kind, config=config, home=settings.HEKLA_HOME, key=key)
    except Invalid as error:
        raise _at_the_configuration(error) from error
    if found.problem is Trouble.UNUSABLE:
        raise Invalid([Problem(field, found.detail)])
    return found


def _require_answer(kind: str, name: str, config: Mapping[str, Any]) -> None:
    """Its machines can be told. Raises Invalid, at the field of the configuration."""
    try:
        backend = open_backend(kind, cluster=name, config=config, home=settings.HEKLA_HOME, clock=clock.now)
    except Invalid as error:
        raise _at_the_configuration(error) from error
    try:
        backend.nodes()
    except BackendError as error:
        raise Invalid([Problem("config", str(error))]) from error
    finally:
        backend.close()


def _at_the_configuration(error: Invalid) -> Invalid:
    problems = (f"{problem.path.removeprefix('config.')}: {problem.message}" for problem in error.problems)
    return Invalid([Problem("config", sentence) for sentence in problems])
