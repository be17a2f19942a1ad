"""The live views of job pages."""

from django.http import QueryDict
from django.template.loader import render_to_string
from django.utils.translation import gettext as _

from hekla.apps.accounts.models import User
from hekla.apps.jobs import selectors as jobs
from hekla.apps.jobs.models import Pod
from hekla.apps.tenancy import selectors as tenancy
from hekla.domain.errors import NotFound
from hekla.lib import clock
from hekla.live.registry import LiveView, Params
from hekla.pages.frame.topics import everybody, tenant_topics, uid_of
from hekla.pages.jobs import context as shown
from hekla.pages.jobs import list_context, pod_context
from hekla.pages.jobs.context import JobRights


def _job_topics(_user: User, params: Params) -> frozenset[str]:
    """The job's topic. The audience has already checked that the person may see the job."""
    return frozenset({f"job:{uid_of(params)}"})


def _job(user: User, params: Params) -> str:
    job = jobs.get(uid_of(params), user, rights := tenancy.rights(user))
    params = {**params, "only": "live"}
    return render_to_string("jobs/_live.html", shown.detail(job, params, JobRights.of(user, job, rights)))


def _job_audience(user: User, params: Params) -> JobRights:
    """What the person may do to the job: people who may do the same share one rendering."""
    job = jobs.get(uid_of(params), user, rights := tenancy.rights(user))
    return JobRights.of(user, job, rights)


def _pod_of(user: User, params: Params) -> Pod:
    text = params.get("pod", "")
    pod = jobs.pod(int(text), user) if text.isdigit() and len(text) < 19 else None  # noqa: PLR2004
    if pod is None or pod.job.uid != uid_of(params):
        raise NotFound(_("Unknown pod."))
    return pod


def _pod_topics(user: User, params: Params) -> frozenset[str]:
    """The events of its job, and the progress of its own preparation."""
    pod = _pod_of(user, params)
    return frozenset({f"job:{pod.job.uid}", f"pod:{pod.pk}"})


def _pod(user: User, params: Params) -> str:
    pod = _pod_of(user, params)
    return render_to_string(
        "jobs/_pod_live.html", pod_context.page(pod, may_act=jobs.may_act(user, pod.job), now=clock.now())
    )


def _list(user: User, params: Params) -> str:
    context = list_context.context(QueryDict(params.get("query", "")[:2000]), user)
    return render_to_string("jobs/_list.html", context) + render_to_string("jobs/_phases.html", context)


VIEWS = {
    "job": (LiveView(_job_topics, _job, _job_audience),),
    "pod": (LiveView(_pod_topics, _pod, everybody),),
    "jobs": (LiveView(tenant_topics, _list),),
}
