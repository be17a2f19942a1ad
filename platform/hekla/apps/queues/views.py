"""Pages that change queues. (What queues hold at the moment is shown by `project.pages`, which knows the jobs.)"""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST

from hekla.apps.accounts import services as accounts
from hekla.apps.accounts.roles import Permission
from hekla.apps.accounts.services import actor_of
from hekla.apps.forms import attach
from hekla.apps.people import person
from hekla.apps.queues import selectors, services
from hekla.apps.queues.forms import QueueChangeForm, QueueForm
from hekla.domain.errors import HeklaError
from hekla.lib import clock


@require_http_methods(["GET", "POST"])
def create(request: HttpRequest) -> HttpResponse:
    """A new queue."""
    accounts.require(person(request), Permission.MANAGE_QUEUES)
    form = QueueForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        try:
            queue = services.create(
                cluster=form.cleaned_data["cluster"],
                name=form.cleaned_data["name"],
                values=form.values(),
                tenants=form.cleaned_data["tenants"],
                actor=actor_of(person(request)),
                now=clock.now(),
            )
        except HeklaError as error:
            attach(form, error)
        else:
            messages.success(request, _("Queue %s is open.") % queue)
            return redirect("queues:list")
    context = {"form": form, "title": _("Add a queue"), "submit": _("Add"), "cancel": reverse("queues:list")}
    return render(request, "form_page.html", context)


@require_http_methods(["GET", "POST"])
def edit(request: HttpRequest, name: str) -> HttpResponse:
    """Change a queue."""
    accounts.require(person(request), Permission.MANAGE_QUEUES)
    form = QueueChangeForm(request.POST or None, instance=selectors.get(name, person(request)))
    if request.method == "POST" and form.is_valid():
        try:
            services.change(
                selectors.get(name, person(request)),
                form.values(),
                tenants=form.cleaned_data["tenants"],
                by=person(request),
                actor=actor_of(person(request)),
                now=clock.now(),
            )
        except HeklaError as error:
            attach(form, error)
        else:
            messages.success(request, _("Saved."))
            return redirect("queues:list")
    context = {"form": form, "title": name, "submit": _("Save"), "cancel": reverse("queues:list")}
    return render(request, "form_page.html", context)


@require_POST
def set_open(request: HttpRequest, name: str) -> HttpResponse:
    """Open or close a queue."""
    accounts.require(person(request), Permission.MANAGE_QUEUES)
    queue, is_open = selectors.get(name, person(request)), request.POST.get("open") == "yes"
    services.set_open(queue, is_open=is_open, by=person(request), actor=actor_of(person(request)), now=clock.now())
    messages.success(request, _("Queue %s is open.") % queue if is_open else _("Queue %s is closed.") % queue)
    return redirect("queues:list")
