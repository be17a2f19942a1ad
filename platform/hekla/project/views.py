"""Pages that join several apps: home, queues, nodes, the scheduling policy."""

from typing import Any

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_not_required
from django.db import DatabaseError, connection
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST, require_safe
from django.views.i18n import set_language

from hekla.apps.accounts import selectors as accounts
from hekla.apps.accounts import services as account_services
from hekla.apps.accounts.models import User
from hekla.apps.accounts.roles import Permission
from hekla.apps.accounts.services import actor_of
from hekla.apps.clusters import selectors as clusters
from hekla.apps.clusters import services as cluster_services
from hekla.apps.demonstrations.stages import STAGES
from hekla.apps.forms import attach
from hekla.apps.jobs import selectors as jobs
from hekla.apps.jobs import shown
from hekla.apps.outbox import selectors as outbox
from hekla.apps.people import person
from hekla.apps.queues import selectors as queues
from hekla.apps.tenancy import selectors as tenancy
from hekla.domain.errors import Invalid, Refused
from hekla.engine import policy
from hekla.lib import clock
from hekla.project import examples, figures
from hekla.project.policy_form import PolicyForm

set_language_for_all = login_not_required(require_POST(set_language))
_MINE = 6
_STAGES = {stage.name for stage in STAGES}


@login_not_required
@require_safe
def health(_request: HttpRequest) -> HttpResponse:
    """Whether this process answers and its database does."""
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except DatabaseError:
        return HttpResponse("no database", status=503, content_type="text/plain")
    return HttpResponse("ok", content_type="text/plain")


@require_safe
def home(request: HttpRequest) -> HttpResponse:
    """Where one begins."""
    since = outbox.last_number()
    context = {"since": since, "examples": examples.names(), "digits": "digits" in examples.names()}
    return render(request, "home.html", home_parts(person(request)) | context)


def home_parts(user: User) -> dict[str, Any]:
    """The live parts of the home page."""
    mine = jobs.visible_to(user).filter(owner=user)
    occupancy = figures.Occupancy.now()
    # Demonstrations have their own page; at rest their machines and queues say nothing here.
    views = [view for view in figures.nodes(user, occupancy) if view.node.cluster.name not in _STAGES]
    real = [view for view in views if not view.node.cluster.is_simulated]
    return {
        "rows": shown.rows(list(mine[:_MINE])),
        "counts": jobs.phase_counts(mine),
        "nodes": views,
        "free": figures.total_free(real),
        "slots": figures.free_slots(real),
        "queues": [view for view in figures.queue_views(user, occupancy) if view.queue.cluster.name not in _STAGES],
    }


@require_POST
def run_example(request: HttpRequest, name: str) -> HttpResponse:
    """The one button: an example job for the tenant that one works for."""
    tenant = tenancy.current(person(request), request.session.get("tenant", ""))
    if tenant is None:
        raise Refused(_("You are not a member of a tenant yet; ask a platform admin."))
    job = examples.run(name, tenant=tenant, user=person(request), now=clock.now())
    return redirect("jobs:detail", job.uid)


@require_safe
def queue_list(request: HttpRequest) -> HttpResponse:
    """The queues that one may see, and what is in them."""
    since = outbox.last_number()
    return render(request, "queues/list.html", {"since": since, "views": figures.queue_views(person(request))})


@require_safe
def queue_detail(request: HttpRequest, name: str) -> HttpResponse:
    """One queue and its jobs in order."""
    since = outbox.last_number()
    return render(request, "queues/detail.html", queue_parts(name, person(request)) | {"since": since})


def queue_parts(name: str, user: User) -> dict[str, Any]:
    """The live parts of a queue's page. Raises NotFound."""
    queue = queues.get(name, user)
    view = next(view for view in figures.queue_views(user) if view.queue.pk == queue.pk)
    waiting = jobs.visible_to(user).filter(queue=queue, finished_at=None).order_by("-priority", "id")[: shown.PAGE]
    return {"view": view, "queue": queue, "rows": shown.rows(list(waiting))}


@require_safe
def nodes(request: HttpRequest) -> HttpResponse:
    """All machines."""
    since = outbox.last_number()
    return render(request, "clusters/nodes.html", {"since": since, "views": figures.nodes(person(request))})


@require_http_methods(["GET", "POST"])
def scheduling_policy(request: HttpRequest) -> HttpResponse:
    """The scheduler configuration of a cluster: its versions, and a new one (validated before it is taken)."""
    user = person(request)
    if not accounts.may(user, Permission.SEE_EVERYTHING):
        raise Refused(_("Only operators and admins of the platform see the scheduling policy."))
    every = list(clusters.all_clusters())
    cluster = next((one for one in every if one.name == request.GET.get("cluster")), every[0] if every else None)
    if cluster is None:
        return redirect("clusters:list")
    text = clusters.policy_text(cluster) or policy.DEFAULT_POLICY_TEXT
    form = PolicyForm(request.POST or None, initial={"text": text})
    if request.method == "POST" and form.is_valid():
        account_services.require(user, Permission.MANAGE_CLUSTERS)
        try:
            policy.parse(form.cleaned_data["text"])
        except Invalid as error:
            attach(form, error)
        else:
            cluster_services.set_policy(cluster, **form.cleaned_data, by=user, actor=actor_of(user), now=clock.now())
            messages.success(request, _("The policy is in force from the next cycle on."))
            return redirect(f"{reverse('clusters:policy')}?cluster={cluster.name}")
    context = {"form": form, "cluster": cluster, "clusters": every, "versions": clusters.policies(cluster)[:20]}
    return render(request, "clusters/policy.html", context)


@login_not_required
@require_safe
def favicon(_request: HttpRequest) -> HttpResponse:
    """Browsers ask for it by this name whatever the page says."""
    return redirect(f"{settings.STATIC_URL}img/favicon.svg", permanent=True)
