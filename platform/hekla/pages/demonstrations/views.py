"""Pages of demonstrations."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.middleware.csrf import get_token
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from hekla.apps.accounts.roles import Permission
from hekla.apps.accounts.selectors import may
from hekla.apps.accounts.services import actor_of
from hekla.apps.demonstrations import selectors, services, workload
from hekla.apps.demonstrations.wake import advancing
from hekla.apps.event_log import selectors as event_log
from hekla.domain.errors import Refused
from hekla.lib import clock
from hekla.pages.demonstrations import context as shown
from hekla.pages.demonstrations.cards import by_topic
from hekla.pages.frame import current_tenant
from hekla.pages.frame.people import person


@require_safe
def demonstrations(request: HttpRequest) -> HttpResponse:
    """List all demonstrations."""
    runs = selectors.visible_to(person(request))
    row = selectors.workload()
    context = {
        "may_remove": row is not None and row.removed_at is None and may(person(request), Permission.MANAGE_CLUSTERS),
        "topics": by_topic(
            set(runs.values_list("demonstration", flat=True)),
            set(runs.filter(ended_at=None).values_list("demonstration", flat=True)),
            get_token(request),
        ),
    }
    return render(request, "demonstrations/list.html", context)


@require_safe
def detail(request: HttpRequest, name: str) -> HttpResponse:
    """Show one demonstration and the jobs of its newest run."""
    since = event_log.last_number()
    return render(request, "demonstrations/detail.html", shown.detail(name, person(request)) | {"since": since})


@require_POST
def start(request: HttpRequest, name: str) -> HttpResponse:
    """Start a run of the demonstration."""
    tenant = current_tenant.tenant(request)
    if tenant is None:
        raise Refused(_("You are not a member of a tenant. Ask a platform admin."))
    without = request.POST.get("without", "")
    run = services.start(name, without=without, tenant=tenant, user=person(request), now=clock.now())
    return redirect("demonstrations:detail", run.demonstration)


@require_POST
def remove_workload(request: HttpRequest) -> HttpResponse:
    """Remove the simulated teams and their jobs."""
    workload.remove(actor=actor_of(person(request)), now=clock.now())
    advancing.soon()
    messages.success(
        request,
        _(
            "The simulated teams submit nothing more. Their jobs are being deleted. The cluster demo and its queues "
            "stay, empty."
        ),
    )
    return redirect("demonstrations:list")
