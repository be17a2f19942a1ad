"""Pages of batches."""

from collections.abc import Callable, Sequence
from typing import Any
from uuid import UUID

from django import forms as django_forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from hekla.apps.batches import selectors, services
from hekla.apps.batches.models import Batch
from hekla.apps.batches.services import SweepJob
from hekla.apps.event_log import selectors as event_log
from hekla.apps.forms import attach
from hekla.apps.jobs import selectors as jobs
from hekla.apps.jobs.facts import valid_spec
from hekla.apps.tenancy.models import Tenant
from hekla.domain.errors import HeklaError
from hekla.lib import clock
from hekla.pages.batches import context as shown
from hekla.pages.batches import forms
from hekla.pages.batches.tables import batches_on
from hekla.pages.frame import current_tenant, downloads
from hekla.pages.frame.people import person
from hekla.pages.job_forms.manifest_forms import MAX_MANIFEST_BYTES
from hekla.pages.runs.table_file import table_text

_RANKING = ("metric", "goal", "value")
_SESSION, _MOST_SAVED, _MOST_WORD = "batch rankings", 20, 41


@require_safe
def batches(request: HttpRequest) -> HttpResponse:
    """List the batches that the person may see."""
    since = event_log.last_number()
    return render(request, "batches/list.html", {"since": since, "batches": batches_on(request, person(request))})


@require_safe
def detail(request: HttpRequest, uid: UUID) -> HttpResponse:
    """Show one batch."""
    since = event_log.last_number()
    batch = selectors.get(uid, person(request))
    context = shown.detail(batch, person(request), _with_ranking(request, batch))
    return render(request, "batches/detail.html", context | {"since": since, "manifest": shown.manifest(batch)})


@require_safe
def table(request: HttpRequest, uid: UUID) -> HttpResponse:
    """Download the table of a batch as CSV, with all parameters, in the order and filters of the page."""
    batch = selectors.get(uid, person(request))
    found = shown.table(batch, _with_ranking(request, batch))
    answer = HttpResponse(table_text(found), content_type="text/csv; charset=utf-8")
    return downloads.attach(answer, f"{batch.name}.csv")


def _with_ranking(request: HttpRequest, batch: Batch) -> QueryDict:
    """The query, with the ranking that the person chose last for this batch if the address chooses none."""
    query, key = request.GET.copy(), str(batch.uid)
    saved: dict[str, dict[str, str]] = request.session.get(_SESSION, {})
    if any(word in query for word in _RANKING):
        chosen = {word: query[word][:_MOST_WORD] for word in _RANKING if query.get(word)}
        if saved.get(key) != chosen:
            others = [(other, words) for other, words in saved.items() if other != key]
            request.session[_SESSION] = dict([*others, (key, chosen)][-_MOST_SAVED:])
    else:
        query.update(saved.get(key, {}))
    return query


@require_http_methods(["GET", "POST"])
def sweep(request: HttpRequest) -> HttpResponse:
    """Preview or submit a sweep."""
    tenant = _tenant(request)
    if tenant is None:
        return render(request, "jobs/no_tenant.html")
    form = forms.SweepForm(request.POST or None, request.FILES or None, initial=_first(request))

    def look() -> list[SweepJob]:
        return services.check_sweep(spec=form.spec()[0], tenant=tenant, user=person(request), now=clock.now())

    def submit() -> tuple[Batch, Sequence[str]]:
        spec, warnings = form.spec()
        return services.submit_sweep(spec=spec, tenant=tenant, user=person(request), now=clock.now()), warnings

    return _form_page(request, "batches/sweep.html", form, tenant, look, submit)


@require_http_methods(["GET", "POST"])
def file(request: HttpRequest) -> HttpResponse:
    """Preview or submit a batch of many manifests."""
    tenant = _tenant(request)
    if tenant is None:
        return render(request, "jobs/no_tenant.html")
    form = forms.ManifestsForm(request.POST or None, request.FILES or None)

    def look() -> list[SweepJob]:
        name, now = form.cleaned_data["name"], clock.now()
        return services.check_file(name=name, specs=form.specs()[0], tenant=tenant, user=person(request), now=now)

    def submit() -> tuple[Batch, Sequence[str]]:
        specs, warnings = form.specs()
        name, now = form.cleaned_data["name"], clock.now()
        return services.submit_file(name=name, specs=specs, tenant=tenant, user=person(request), now=now), warnings

    return _form_page(request, "batches/file.html", form, tenant, look, submit)


@require_POST
def stop(request: HttpRequest, uid: UUID) -> HttpResponse:
    """Abort all jobs of the batch that have not ended."""
    stopped = services.stop(selectors.get(uid, person(request)), user=person(request), now=clock.now())
    sentence = ngettext("Stopping %d job.", "Stopping %d jobs.", stopped)
    messages.success(request, sentence % stopped if stopped else _("No job of this batch is running or pending."))
    return redirect("batches:detail", uid)


@require_POST
def retry(request: HttpRequest, uid: UUID) -> HttpResponse:
    """Submit the failed jobs again."""
    again = services.retry_failed(selectors.get(uid, person(request)), user=person(request), now=clock.now())
    sentence = ngettext("Resubmitted %d job.", "Resubmitted %d jobs.", again)
    messages.success(request, sentence % again if again else _("No job of this batch has failed."))
    return redirect("batches:detail", uid)


def _form_page(
    request: HttpRequest,
    template: str,
    form: django_forms.Form,
    tenant: Tenant,
    look: Callable[[], list[SweepJob]],
    submit: Callable[[], tuple[Batch, Sequence[str]]],
) -> HttpResponse:
    """The form, with a preview if the person asks for one; or a redirect to the new batch."""
    context: dict[str, Any] = {"tenant": tenant, "form": form, "most_bytes": MAX_MANIFEST_BYTES}
    if request.method == "POST" and form.is_valid():
        try:
            if request.POST.get("do") == "look":
                found = look()
                context |= {"preview": found[: shown.MOST_IN_PREVIEW], "size": len(found)}
            else:
                batch, warnings = submit()
                for warning in warnings:
                    messages.warning(request, warning)
                return redirect("batches:detail", batch.uid)
        except HeklaError as error:
            attach(form, error)
    return render(request, template, context)


def _tenant(request: HttpRequest) -> Tenant | None:
    return current_tenant.tenant(request)


def _first(request: HttpRequest) -> dict[str, Any]:
    """Initial values of the form: the job to sweep over, if the address names one."""
    try:
        uid = UUID(request.GET.get("job", ""))
    except ValueError:
        return {}
    return forms.first_job(valid_spec(jobs.get(uid, person(request))))
