"""The form of a report, for a new one and for one that exists."""

from typing import Any
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods

from hekla.apps.reports import selectors, services
from hekla.domain.errors import HeklaError
from hekla.lib import clock
from hekla.pages.frame.people import person
from hekla.pages.reports.forms import ReportChangeForm, ReportForm, attach_problems, first_values


@require_http_methods(["GET", "HEAD", "POST"])
def create(request: HttpRequest) -> HttpResponse:
    """Add a report."""
    user = person(request)
    initial = {"time_zone": timezone.get_current_timezone_name(), "recipients": user.username}
    form = ReportForm(request.POST or None, user=user, initial=initial)
    if request.method == "POST" and form.is_valid():
        try:
            report = services.create(spec=form.spec(), user=user, now=clock.now())
            return redirect("reports:detail", report.uid)
        except HeklaError as error:
            attach_problems(form, error)
    return _page(request, form, _("New report"), _("Create"), reverse("reports:list"))


@require_http_methods(["GET", "HEAD", "POST"])
def edit(request: HttpRequest, uid: UUID) -> HttpResponse:
    """Change a report. From then on it is this person's."""
    user = person(request)
    report = selectors.get(uid, user)
    services.require_right(report, user)

    def stored() -> dict[str, Any]:
        return first_values(selectors.spec_of(selectors.get(uid, user)))

    form = ReportChangeForm(request.POST or None, stored=stored, user=user, is_paused=report.is_paused)
    if request.method == "POST" and form.is_valid():
        try:
            with form.saving():
                services.change(report, form.spec(), user=user, now=clock.now())
            return redirect("reports:detail", uid)
        except HeklaError as error:
            attach_problems(form, error)
    return _page(request, form, report.name, _("Save"), reverse("reports:detail", args=[uid]))


def _page(request: HttpRequest, form: ReportForm, title: str, submit: str, cancel: str) -> HttpResponse:
    return render(request, "reports/form.html", {"form": form, "title": title, "submit": submit, "cancel": cancel})
