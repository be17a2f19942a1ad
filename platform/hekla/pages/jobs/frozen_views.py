"""Failed pods that stay: the part of the job's page about them, and its buttons."""

from typing import Any
from uuid import UUID

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.formats import date_format
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from hekla.apps.jobs import selectors, services
from hekla.apps.jobs.models import FrozenPod, Job
from hekla.domain.errors import NotFound, Refused
from hekla.domain.job_kinds import SESSION
from hekla.lib import clock
from hekla.pages.frame.people import person


def context(job: Job, *, may_act: bool) -> dict[str, Any]:
    """`frozen`: the pods of the job that stay; `failed_pod`: the one in whose files it continues, if it does."""
    found = selectors.frozen_pods(job) if job.is_final and job.spec.get("keep_failed_seconds") else []
    return {
        "frozen": [_row(one, may_act=may_act and job.deleted_at is None) for one in found if _stays(one)],
        "failed_pod": selectors.source_of(job) if job.kind == SESSION else None,
    }


def _stays(frozen: FrozenPod) -> bool:
    return frozen.released_at is None and frozen.size is not None


def _row(frozen: FrozenPod, *, may_act: bool) -> dict[str, Any]:
    job = frozen.debug_job
    return {
        "pod": frozen.pod,
        "until": frozen.until,
        "size": frozen.size,
        "debug_job": job if job and not job.is_final else None,
        "may_act": may_act,
        "may_extend": may_act and services.last_moment(frozen) > frozen.until,
    }


@require_POST
def act(request: HttpRequest, uid: UUID, pod_id: int) -> HttpResponse:
    """Continue where the pod failed, let its files stay longer, or delete them."""
    user, now = person(request), clock.now()
    pod = selectors.pod(pod_id, user)
    if pod.job.uid != uid:
        raise NotFound(_("Unknown pod."))
    services.require_right(pod.job, user)
    match request.POST.get("do"):
        case "open":
            job, _is_new = services.open_frozen(pod_id, user=user, now=now)
            return redirect("jobs:detail", job.uid)
        case "extend":
            seconds = int(pod.job.spec.get("keep_failed_seconds") or 0)
            frozen = services.keep_frozen(pod_id, seconds, user=user, now=now)
            until = date_format(frozen.until, "DATETIME_FORMAT")
            messages.success(request, _("The files of %(pod)s stay until %(until)s.") % {"pod": pod, "until": until})
        case "release":
            services.release_frozen(pod_id, user=user, now=now)
            messages.success(request, _("The files of %(pod)s are deleted.") % {"pod": pod})
        case _unknown:
            raise Refused(_("Unknown action."))
    return redirect("jobs:detail", uid)
