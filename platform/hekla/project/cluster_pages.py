"""The pages that add and change a cluster: what its backend makes of the configuration is told at that field."""

from collections.abc import Mapping
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods

from hekla.apps.accounts import services as accounts
from hekla.apps.accounts.roles import Permission
from hekla.apps.accounts.services import actor_of
from hekla.apps.clusters import selectors, services
from hekla.apps.clusters.forms import ClusterChangeForm, ClusterForm
from hekla.apps.forms import attach, form_page
from hekla.apps.people import person
from hekla.backends.base import BackendError
from hekla.backends.registry import open_backend
from hekla.domain.errors import HeklaError, Invalid, Problem
from hekla.lib import clock


@require_http_methods(["GET", "POST"])
def create(request: HttpRequest) -> HttpResponse:
    """A new cluster."""
    accounts.require(person(request), Permission.MANAGE_CLUSTERS)
    form = ClusterForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        wanted = form.cleaned_data
        try:
            _require_answer(wanted["kind"], wanted["name"], wanted["config"])
            services.create(**wanted, actor=actor_of(person(request)), now=clock.now())
        except HeklaError as error:
            attach(form, error)
        else:
            messages.success(request, _("The cluster was added. Now give it a queue."))
            return redirect("clusters:list")
    return form_page(request, form, title=_("Add a cluster"), submit=_("Add"), cancel=reverse("clusters:list"))


@require_http_methods(["GET", "POST"])
def edit(request: HttpRequest, name: str) -> HttpResponse:
    """Change a cluster. One that does not answer now can be paused all the same."""
    accounts.require(person(request), Permission.MANAGE_CLUSTERS)
    cluster = selectors.get(name)
    form = ClusterChangeForm(request.POST or None, instance=selectors.get(name))
    if request.method == "POST" and form.is_valid():
        try:
            if form.cleaned_data["config"] != cluster.config:
                _require_answer(cluster.kind, name, form.cleaned_data["config"])
            services.change(cluster, form.cleaned_data, actor=actor_of(person(request)), now=clock.now())
        except HeklaError as error:
            attach(form, error)
        else:
            messages.success(request, _("Saved."))
            return redirect("clusters:list")
    return form_page(request, form, title=name, submit=_("Save"), cancel=reverse("clusters:list"))


def _require_answer(kind: str, name: str, config: Mapping[str, Any]) -> None:
    """Its machines can be told. Raises Invalid, at the field of the configuration."""
    try:
        backend = open_backend(kind, cluster=name, config=config, home=settings.HEKLA_HOME, clock=clock.now)
    except Invalid as error:
        problems = (f"{problem.path.removeprefix('config.')}: {problem.message}" for problem in error.problems)
        raise Invalid([Problem("config", sentence) for sentence in problems]) from error
    try:
        backend.nodes()
    except BackendError as error:
        raise Invalid([Problem("config", str(error))]) from error
    finally:
        backend.close()
