"""The page of a tenant's files: how much of its limit they take, and the jobs with the most."""

from dataclasses import dataclass

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods

from hekla.apps.accounts.models import User
from hekla.apps.accounts.roles import Permission
from hekla.apps.accounts.services import actor_of
from hekla.apps.forms import attach
from hekla.apps.job_history import labels
from hekla.apps.jobs import selectors as jobs
from hekla.apps.tenancy import selectors as tenancy
from hekla.apps.tenancy import services
from hekla.apps.tenancy.models import Tenant
from hekla.apps.usage import selectors as usage
from hekla.apps.usage.models import JobFolder
from hekla.domain.errors import HeklaError
from hekla.lib import clock
from hekla.pages.frame.people import person
from hekla.pages.tenant_files.forms import FileLimitForm

_MOST_FOLDERS = 20


@dataclass(frozen=True, slots=True)
class FolderRow:
    """A job and its files. `percent`: of all files of the tenant. `deletion`: the question first; empty: not now."""

    folder: JobFolder
    percent: int
    deletion: str


@require_http_methods(["GET", "POST"])
def show(request: HttpRequest, slug: str) -> HttpResponse:
    """Show the limit, the use, and the largest folders. People with permission set the limit here."""
    user = person(request)
    tenant = tenancy.get(slug, user)
    form = FileLimitForm(request.POST or None, stored=lambda: {"files_gib": tenancy.get(slug, user).files_gib})
    if request.method == "POST":
        services.require(user, tenant, Permission.SET_TENANT_QUOTAS)
        if form.is_valid() and _saved(form, tenant, user):
            messages.success(request, _("Saved."))
            return redirect("tenancy:files", slug)
    found = usage.files_of(tenant)
    context = {
        "tenant": tenant,
        "found": found,
        "rows": list(_rows(tenant, user, found.size)),
        "form": form if tenancy.may(user, tenant.pk, Permission.SET_TENANT_QUOTAS) else None,
    }
    return render(request, "tenant_files/show.html", context)


def _saved(form: FileLimitForm, tenant: Tenant, user: User) -> bool:
    try:
        with form.saving():
            services.set_file_limit(tenant, **form.cleaned_data, actor=actor_of(user), now=clock.now())
    except HeklaError as error:
        attach(form, error)
    return form.is_valid()


def _rows(tenant: Tenant, user: User, total: int) -> list[FolderRow]:
    may_act = jobs.action_predicate(user, tenancy.rights(user))
    rows = []
    for folder in usage.largest_folders(tenant, _MOST_FOLDERS):
        job = folder.job
        is_deletable = job.is_final and job.deleted_at is None and may_act(job)
        question = labels.files_go(job.replicas) if is_deletable else ""
        rows.append(FolderRow(folder, round(100 * folder.size / total) if total else 0, question))
    return rows
