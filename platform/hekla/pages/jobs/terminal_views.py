"""The page of a terminal in a pod. The terminal itself is a websocket (`live.terminals`)."""

from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from hekla.apps.jobs import selectors, services
from hekla.domain.errors import NotFound
from hekla.pages.frame.people import person


@require_safe
def terminal(request: HttpRequest, uid: UUID, pod_id: int) -> HttpResponse:
    """A terminal in a pod, or why there can be none now. Raises Forbidden for people who may not act on the job."""
    pod = selectors.pod(pod_id, person(request))
    if pod.job.uid != uid:
        raise NotFound(_("Unknown pod."))
    services.require_right(pod.job, person(request))
    context = {
        "pod": pod,
        "job": pod.job,
        "no_terminal": services.no_terminal(pod),
        "ssh_command": f"hekla ssh {pod.job.name} --pod {pod}",
        "of": request.GET.get("of", "")[:32],
        "nonce": str(request.csp_nonce),  # type: ignore[attr-defined]
    }
    return render(request, "jobs/terminal.html", context)
