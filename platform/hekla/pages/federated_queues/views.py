"""Pages of federated queues: one name for queues of several clusters."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from hekla.apps.accounts import services as accounts
from hekla.apps.accounts.roles import Permission
from hekla.apps.accounts.services import actor_of
from hekla.apps.forms import attach, form_page
from hekla.apps.queues import selectors, services
from hekla.apps.queues.models import FederatedQueue
from hekla.domain.errors import HeklaError
from hekla.lib import clock
from hekla.pages.federated_queues.tables import (
    FederatedMembersTable,
    FederatedQueueRow,
    FederatedQueuesFilter,
    FederatedQueuesTable,
)
from hekla.pages.frame import current_tenant
from hekla.pages.frame.people import person
from hekla.pages.frame.tables import listing
from hekla.pages.queues.forms import FederatedQueueChangeForm, FederatedQueueForm


@require_safe
def listed(request: HttpRequest) -> HttpResponse:
    """List the federated queues that the person may see."""
    user, rights = person(request), current_tenant.rights(request)
    visible = {queue.pk: queue for queue in selectors.visible_to(user, rights).order_by("cluster__name")}

    def rows(federated_queues: list[FederatedQueue]) -> list[FederatedQueueRow]:
        within = [{queue.pk for queue in federated.members.all()} for federated in federated_queues]
        return [
            FederatedQueueRow(federated, [queue for pk, queue in visible.items() if pk in members])
            for federated, members in zip(federated_queues, within, strict=True)
        ]

    found = listing(
        request, FederatedQueuesTable, selectors.federated_visible_to(user, rights), FederatedQueuesFilter, rows=rows
    )
    return render(request, "federated_queues/list.html", {"federated_queues": found})


@require_safe
def detail(request: HttpRequest, name: str) -> HttpResponse:
    """Show one federated queue with its member queues."""
    user, rights = person(request), current_tenant.rights(request)
    federated = selectors.federated(name, user, rights)
    members = listing(request, FederatedMembersTable, selectors.visible_members(federated, user, rights))
    return render(request, "federated_queues/detail.html", {"federated_queue": federated, "members": members})


@require_http_methods(["GET", "POST"])
def create(request: HttpRequest) -> HttpResponse:
    """Add a federated queue."""
    user = person(request)
    accounts.require(user, Permission.MANAGE_QUEUES)
    form = FederatedQueueForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        try:
            federated = services.create_federated(**form.cleaned_data, actor=actor_of(user), now=clock.now())
        except HeklaError as error:
            attach(form, error)
        else:
            messages.success(request, _("Jobs can now be submitted to %s.") % federated)
            return redirect("federated_queues:detail", federated.name)
    return form_page(
        request, form, title=_("Add federated queue"), submit=_("Add"), cancel=reverse("federated_queues:list")
    )


@require_http_methods(["GET", "POST"])
def edit(request: HttpRequest, name: str) -> HttpResponse:
    """Change a federated queue."""
    user = person(request)
    accounts.require(user, Permission.MANAGE_QUEUES)
    form = FederatedQueueChangeForm(request.POST or None, instance=selectors.federated(name, user))
    if request.method == "POST" and form.is_valid():
        fresh = selectors.federated(name, user)
        try:
            with form.saving():
                services.change_federated(fresh, **form.cleaned_data, by=user, actor=actor_of(user), now=clock.now())
        except HeklaError as error:
            attach(form, error)
        else:
            messages.success(request, _("Saved."))
            return redirect("federated_queues:detail", name)
    return form_page(
        request, form, title=name, submit=_("Save"), cancel=reverse("federated_queues:detail", args=[name])
    )


@require_POST
def delete(request: HttpRequest, name: str) -> HttpResponse:
    """Delete a federated queue. Its member queues stay."""
    user = person(request)
    accounts.require(user, Permission.MANAGE_QUEUES)
    services.delete_federated(selectors.federated(name, user), actor=actor_of(user), now=clock.now())
    messages.success(request, _("Deleted %s. Its queues stay.") % name)
    return redirect("federated_queues:list")
