"""The list of jobs: the page, its CSV file, bulk actions, and how a person arranges it."""

from urllib.parse import urlencode
from uuid import UUID

from django.contrib import messages
from django.forms import Form
from django.http import HttpRequest, HttpResponse, QueryDict, StreamingHttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from hekla.apps.accounts.roles import Permission
from hekla.apps.batches.comparison import MOST_JOBS
from hekla.apps.event_log import selectors as event_log
from hekla.apps.jobs import filters, selectors, services
from hekla.apps.jobs.models import Job
from hekla.apps.query_parameters import require_effective
from hekla.apps.tenancy import selectors as tenancy
from hekla.domain.errors import Invalid, Problem
from hekla.lib import clock
from hekla.pages.frame import current_tenant, downloads
from hekla.pages.frame.people import person
from hekla.pages.jobs import bulk_report, columns, list_context
from hekla.pages.jobs import table_file as files
from hekla.pages.jobs.list_forms import MOST_IN_ADDRESS, ActionForm, JobListSettingsForm, QueryField, ViewForm


@require_safe
def jobs(request: HttpRequest) -> HttpResponse:
    """List the jobs that the person may see, filtered and sorted by the query. Without a query, open the saved view."""
    since, user = event_log.last_number(), person(request)
    arrangement = selectors.arrangement(user)
    if not request.GET and arrangement.opens_with is not None:
        return redirect(f"{reverse('jobs:list')}?{arrangement.opens_with.query}")
    rights, query = current_tenant.rights(request), request.GET.copy()
    if scope := current_tenant.scope(request):
        query.setdefault("tenant", scope.slug)
    context = list_context.context(query, user, rights=rights, arrangement=arrangement)
    context |= list_context.choices(query, user, rights, scope) | {
        "since": since,
        "views": selectors.listed_views_of(user, rights),
        "arrangement": arrangement,
        "every_column": columns.COLUMNS,
        "shares": rights.where(Permission.SHARE_VIEWS),
        "report": request.session.pop(bulk_report.SESSION, None),
    }
    return render(request, "jobs/list.html", context)


@require_safe
def table_file(request: HttpRequest) -> StreamingHttpResponse:
    """Download all pages of the list as CSV."""
    found = list_context.filtered_jobs(request.GET, person(request))
    response = StreamingHttpResponse(
        files.lines(found, filters.order(request.GET)), content_type="text/csv; charset=utf-8"
    )
    return downloads.attach(response, f"jobs-{clock.now():%Y-%m-%d}.csv")


@require_POST
def act(request: HttpRequest) -> HttpResponse:
    """Run an action on the selected jobs or on all jobs of the list, and return to the list, which reports it."""
    form = _valid(ActionForm(request.POST))
    query = QueryDict(form.cleaned_data["query"])
    chosen, left = _chosen(request, query, everything=bool(form.cleaned_data["all"]))
    command = {name: form.cleaned_data[name] for name in ("action", "priority")}
    before = {job.pk: job.priority for job in chosen}
    outcomes = services.act_on_all(chosen, **command, user=person(request), now=clock.now())
    action = form.cleaned_data["action"]
    request.session[bulk_report.SESSION] = bulk_report.report(action, outcomes, before, is_cut=left)
    return redirect(f"{reverse('jobs:list')}?{query.urlencode() or 'all=yes'}")


@require_POST
def compare(request: HttpRequest) -> HttpResponse:
    """Open the comparison of the selected jobs, or of the first jobs of the list. It checks who may see them."""
    chosen, query = request.POST.getlist("uid"), QueryDict(request.POST.get("query", "")[:MOST_IN_ADDRESS])
    if request.POST.get("all"):
        found = filters.order(query).of(list_context.filtered_jobs(query, person(request)))
        chosen = [str(uid) for uid in found.values_list("uid", flat=True)[: MOST_JOBS + 1]]
    if len(chosen) > MOST_JOBS:
        messages.warning(request, _("A comparison has at most %d jobs. These are the first of them.") % MOST_JOBS)
    return redirect(f"{reverse('runs:compare')}?{urlencode([('job', uid) for uid in chosen[:MOST_JOBS]])}")


def _chosen(request: HttpRequest, query: QueryDict, *, everything: bool) -> tuple[list[Job], bool]:
    """The selected jobs, and whether there are more than one request may act on. Raises Invalid.

    `everything`: all jobs of the list, of which the person saw the number. A filter in its query that has no effect is
    an error: the person meant fewer jobs.
    """
    user, most = person(request), services.MOST_AT_ONCE
    if everything:
        require_effective(query, list_context.PARAMETERS)
        found = list(filters.order(query).of(list_context.filtered_jobs(query, user))[: most + 1])
        return found[:most], len(found) > most
    try:
        uids = [UUID(text) for text in request.POST.getlist("uid")[:most]]
    except ValueError as error:
        raise Invalid([Problem("uid", _("Unknown job."))]) from error
    return list(selectors.visible_to(user).filter(uid__in=uids)), False


@require_POST
def arrange(request: HttpRequest) -> HttpResponse:
    """Save the columns of the list, and its default view."""
    user = person(request)
    form = _valid(JobListSettingsForm(request.POST, views=selectors.views_of(user)))
    services.arrange(**form.cleaned_data, user=user, now=clock.now())
    return _back(request)


@require_POST
def save_view(request: HttpRequest) -> HttpResponse:
    """Save the current list as a named view."""
    user = person(request)
    form = _valid(ViewForm(request.POST, tenants=tenancy.own(user)))
    view = services.save_view(**form.cleaned_data, user=user, now=clock.now())
    messages.success(request, _("List saved as “%s”.") % view)
    return _back(request)


@require_POST
def delete_view(request: HttpRequest, pk: int) -> HttpResponse:
    """Delete a saved view. Jobs are not affected."""
    user = person(request)
    services.delete_view(selectors.view(pk, user), user=user, now=clock.now())
    return _back(request)


def _valid(form: Form) -> Form:
    """The form, validated. Raises Invalid."""
    if not form.is_valid():
        raise Invalid([Problem(name, str(text)) for name, texts in form.errors.items() for text in texts])
    return form


def _back(request: HttpRequest) -> HttpResponse:
    """A redirect to the list that sent the form."""
    query = QueryField().to_python(request.POST.get("query", ""))
    return redirect(f"{reverse('jobs:list')}?{query or 'all=yes'}")
