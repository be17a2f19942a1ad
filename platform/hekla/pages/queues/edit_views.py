"""Pages that change queues. (`views` shows what queues hold.)"""

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
from hekla.apps.queues import selectors, services
from hekla.apps.queues.models import Queue
from hekla.domain.errors import HeklaError, Refused
from hekla.lib import clock
from hekla.pages.frame.people import person
from hekla.pages.queues.forms import QueueChangeForm, QueueForm
from hekla.scheduling import queue_check
from hekla.simulation import queue_descriptions, queue_shares


@require_http_methods(["GET", "POST"])
def create(request: HttpRequest) -> HttpResponse:
    """Add a queue."""
    accounts.require(person(request), Permission.MANAGE_QUEUES)
    form = QueueForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        try:
            queue = services.create(
                cluster=form.cleaned_data["cluster"],
                name=form.cleaned_data["name"],
                values=form.values(),
                tenants=form.cleaned_data["tenants"],
                allow_unknown_resources=form.cleaned_data["allow_unknown_resources"],
                actor=actor_of(person(request)),
                now=clock.now(),
            )
        except HeklaError as error:
            attach(form, error)
        else:
            messages.success(request, _("Queue %s is open.") % queue)
            _warn(request, queue)
            return redirect("queues:list")
    context = {"form": form, "title": _("Add queue"), "submit": _("Add"), "cancel": reverse("queues:list")}
    return render(request, "queues/form.html", context | {"preview": reverse("queues:preview_new")})


@require_http_methods(["GET", "POST"])
def edit(request: HttpRequest, name: str) -> HttpResponse:
    """Change a queue."""
    accounts.require(person(request), Permission.MANAGE_QUEUES)
    form = QueueChangeForm(request.POST or None, instance=selectors.get(name, person(request)))
    if request.method == "POST" and form.is_valid():
        queue = selectors.get(name, person(request))
        try:
            with form.saving():
                services.change(
                    queue,
                    form.values(),
                    tenants=form.cleaned_data["tenants"],
                    allow_unknown_resources=form.cleaned_data["allow_unknown_resources"],
                    by=person(request),
                    actor=actor_of(person(request)),
                    now=clock.now(),
                )
        except HeklaError as error:
            attach(form, error)
        else:
            messages.success(request, _("Saved."))
            _warn(request, queue)
            return redirect("queues:list")
    context = {"form": form, "title": name, "submit": _("Save"), "cancel": reverse("queues:list")}
    return render(request, "queues/form.html", context | {"preview": reverse("queues:preview", args=[name])})


def _warn(request: HttpRequest, queue: Queue) -> None:
    over = queue_descriptions.over_commitments(queue_shares.over_commitments(queue))
    for sentence in [*over, *queue_check.warnings(queue)]:
        messages.warning(request, sentence)


@require_POST
def set_state(request: HttpRequest, name: str) -> HttpResponse:
    """Open, close or drain a queue."""
    accounts.require(person(request), Permission.MANAGE_QUEUES)
    queue, state = selectors.get(name, person(request)), request.POST.get("state", "")
    if state not in Queue.State.values:
        raise Refused(_("A queue can be open, closed or draining."))
    services.set_state(queue, state, by=person(request), actor=actor_of(person(request)), now=clock.now())
    messages.success(
        request, _("Queue %(name)s is now %(state)s.") % {"name": queue, "state": queue.get_state_display()}
    )
    return redirect("queues:detail", name)
