"""Cordoning of nodes, and pages of environments."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from hekla.apps.accounts import selectors as people
from hekla.apps.accounts import services as accounts
from hekla.apps.accounts.roles import Permission
from hekla.apps.accounts.services import actor_of
from hekla.apps.clusters import selectors, services
from hekla.apps.forms import attach, form_page
from hekla.domain.errors import HeklaError
from hekla.lib import clock
from hekla.pages.clusters.forms import EnvironmentChangeForm, EnvironmentForm
from hekla.pages.clusters.tables import EnvironmentsFilter, EnvironmentsTable
from hekla.pages.frame.people import person
from hekla.pages.frame.tables import listing


@require_POST
def cordon(request: HttpRequest, node_id: int) -> HttpResponse:
    """Cordon or uncordon a node."""
    accounts.require(person(request), Permission.MANAGE_CLUSTERS)
    node, cordoned = selectors.node(node_id), request.POST.get("cordon") == "yes"
    services.cordon(node, cordoned=cordoned, actor=actor_of(person(request)), now=clock.now())
    messages.success(request, _("%s accepts no new pods.") % node if cordoned else _("%s accepts pods again.") % node)
    return redirect("clusters:node", node.pk) if request.POST.get("from") == "node" else redirect("clusters:nodes")


@require_safe
def environments(request: HttpRequest) -> HttpResponse:
    """List all environments. All people may use them."""
    facts = {"may_edit": people.may(person(request), Permission.MANAGE_CLUSTERS)}
    found = listing(request, EnvironmentsTable, selectors.environments(), EnvironmentsFilter, facts=facts)
    return render(request, "clusters/environments.html", {"environments": found})


@require_http_methods(["GET", "POST"])
def create_environment(request: HttpRequest) -> HttpResponse:
    """Add an environment."""
    accounts.require(person(request), Permission.MANAGE_CLUSTERS)
    form = EnvironmentForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        try:
            services.create_environment(**form.cleaned_data, actor=actor_of(person(request)), now=clock.now())
        except HeklaError as error:
            attach(form, error)
        else:
            messages.success(request, _("Environment added. Hekla builds it when a job first uses it."))
            return redirect("clusters:environments")
    return form_page(
        request, form, title=_("Add environment"), submit=_("Add"), cancel=reverse("clusters:environments")
    )


@require_http_methods(["GET", "POST"])
def edit_environment(request: HttpRequest, name: str) -> HttpResponse:
    """Change an environment."""
    accounts.require(person(request), Permission.MANAGE_CLUSTERS)
    form = EnvironmentChangeForm(request.POST or None, instance=selectors.environment(name))
    if request.method == "POST" and form.is_valid():
        fresh = selectors.environment(name)
        try:
            with form.saving():
                services.change_environment(fresh, form.cleaned_data, actor=actor_of(person(request)), now=clock.now())
        except HeklaError as error:
            attach(form, error)
        else:
            messages.success(request, _("Saved. New jobs use the changed environment."))
            return redirect("clusters:environments")
    return form_page(request, form, title=name, submit=_("Save"), cancel=reverse("clusters:environments"))
