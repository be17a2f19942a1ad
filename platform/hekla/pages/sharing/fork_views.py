"""The page that forks a job with the files of one pod."""

from uuid import UUID

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods

from hekla.apps.jobs import missing_files
from hekla.apps.jobs import selectors as jobs
from hekla.apps.jobs import services as job_services
from hekla.apps.jobs.clone import clone_job
from hekla.apps.sharing import services
from hekla.domain.errors import NotFound
from hekla.domain.tools import STARTED_TOOLS
from hekla.lib import clock
from hekla.live.logs import backend_of
from hekla.pages.frame.people import person


@require_http_methods(["GET", "HEAD", "POST"])
def fork(request: HttpRequest, uid: UUID, pod_id: int) -> HttpResponse:
    """What a fork is and copies. POST submits it."""
    user = person(request)
    pod = jobs.pod(pod_id, user)
    if pod.job.uid != uid:
        raise NotFound(_("Unknown pod."))
    job_services.require_submission_right(pod.job.tenant, user)
    tool = request.POST.get("tool", request.GET.get("tool", ""))
    tool = tool if tool in STARTED_TOOLS else ""
    only_files = "only_files" in (request.POST or request.GET)
    if request.method == "POST":
        made = services.fork(pod, tool=tool, only_files=only_files, user=user, now=clock.now())
        messages.success(request, _("Submitted %(new)s, a fork of %(old)s.") % {"new": made.job, "old": pod.job})
        return redirect(f"{reverse('jobs:detail', args=[made.job.uid])}?tab=pods")
    has_files = not pod.job.cluster.is_simulated and backend_of(pod).files is not None
    context = {
        "pod": pod,
        "job": pod.job,
        "tool": tool,
        "only_files": only_files,
        "tools": STARTED_TOOLS,
        "no_files": "" if has_files else missing_files.no_files(pod),
        "secrets": clone_job(pod.job, pod.job.tenant).secrets,
    }
    return render(request, "sharing/fork.html", context)
