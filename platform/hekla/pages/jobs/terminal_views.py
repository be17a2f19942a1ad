"""The page of a terminal in a pod. The terminal itself is a websocket (`live.terminals`)."""

from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from hekla.apps.jobs import selectors, services
from hekla.apps.sharing import selectors as sharing
from hekla.domain.errors import NotFound
from hekla.lib import clock
from hekla.pages.frame.people import person


@require_safe
def terminal(request: HttpRequest, uid: UUID, pod_id: int) -> HttpResponse:
    """A terminal in a pod, or why there can be none now.

    Raises Forbidden for people who may not act on the job, unless they are invited to the terminal `of`.
    """
    pod = selectors.pod(pod_id, person(request))
    if pod.job.uid != uid:
        raise NotFound(_("Unknown pod."))
    of = request.GET.get("of", "")[:32]
    guest = None
    if not selectors.may_act(person(request), pod.job):
        guest = sharing.guest_of_terminal(of, pod.pk, person(request), now=clock.now())
        if guest is None:
            services.require_right(pod.job, person(request))
    context = {
        "pod": pod,
        "job": pod.job,
        "no_terminal": services.no_terminal(pod),
        "ssh_command": "" if guest else f"hekla ssh {pod.job.name} --pod {pod}",
        "of": of,
        "any_terminal": UUID(int=0),
        "nonce": str(request.csp_nonce),  # type: ignore[attr-defined]
    }
    return render(request, "jobs/terminal.html", context)
