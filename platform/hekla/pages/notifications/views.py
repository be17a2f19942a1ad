"""Pages of notifications: the bell, the list, and preferences, for all jobs and for one."""

from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

from django.conf import settings as platform
from django.contrib import messages
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from hekla.apps.accounts.models import User
from hekla.apps.announcements import selectors as announcements
from hekla.apps.forms import attach
from hekla.apps.jobs import selectors as jobs
from hekla.apps.jobs.models import Job
from hekla.apps.notifications import selectors, services
from hekla.apps.notifications.choices import Channel
from hekla.apps.notifications.models import JobChoice
from hekla.domain.errors import HeklaError
from hekla.lib import clock
from hekla.pages.frame.people import person
from hekla.pages.notifications.forms import JobChoiceForm, PreferenceChangeForm
from hekla.pages.notifications.rows import notification_rows

_PAGE = 50


@require_safe
def notifications(request: HttpRequest) -> HttpResponse:
    """List the person's notifications, newest first. The list polls for its updates."""
    page = Paginator(selectors.visible_to(person(request)), _PAGE).get_page(request.GET.get("page"))
    found = list(page.object_list)
    context = {"page": page, "rows": notification_rows(found), "newest": found[0].pk if found else 0}
    is_part = request.headers.get("HX-Request") == "true"
    return render(request, "notifications/_list.html" if is_part else "notifications/list.html", context)


@require_safe
def bell(request: HttpRequest) -> HttpResponse:
    """The number of unread notifications, and the announcements: each page asks for both together."""
    user = person(request)
    context = {
        "unread": selectors.unread(user),
        "announcements": announcements.current(user, now=clock.now()),
        "here": urlsplit(request.headers.get("Referer", ""))._replace(scheme="", netloc="").geturl(),
    }
    return render(request, "notifications/_bell_answer.html", context)


@require_POST
def read(request: HttpRequest) -> HttpResponse:
    """Mark all notifications that the page showed as read."""
    newest = request.POST.get("newest", "")
    if newest.isascii() and newest.isdigit() and len(newest) < 19:  # noqa: PLR2004
        services.mark_read(person(request), up_to=int(newest), now=clock.now())
    return redirect("notifications:list")


@require_http_methods(["GET", "POST"])
def settings(request: HttpRequest) -> HttpResponse:
    """Show and change the preferences for all jobs, and the channels."""
    form = _preference_form(request, request.POST or None)
    if request.method == "POST" and form.is_valid():
        try:
            with form.saving():
                secret = services.choose(person(request), form.values(), now=clock.now())
        except HeklaError as error:
            attach(form, error)
        else:
            messages.success(request, _("Saved."))
            if not secret:
                return redirect("notifications:settings")
            return _settings(request, _preference_form(request), secret)
    return _settings(request, form)


@require_POST
def secret(request: HttpRequest) -> HttpResponse:
    """Create a new webhook secret, and show it once."""
    made = services.renew_secret(person(request))
    return _settings(request, _preference_form(request), made)


def _preference_form(request: HttpRequest, data: QueryDict | None = None) -> PreferenceChangeForm:
    user = person(request)
    return PreferenceChangeForm(data, stored=lambda: PreferenceChangeForm.first(selectors.preference(user)))


def _settings(request: HttpRequest, form: PreferenceChangeForm, secret: str = "") -> HttpResponse:
    preference = selectors.preference(person(request))
    context = {
        "form": form,
        "secret": secret,
        "has_webhook": bool(preference.webhook_url),
        "has_mail": platform.MAIL_IS_SET_UP,
    }
    return render(request, "notifications/settings.html", context)


@require_http_methods(["GET", "POST"])
def job(request: HttpRequest, uid: UUID) -> HttpResponse:
    """Show and change the preferences for one job: a part of its page, or a page of its own after a refusal."""
    user = person(request)
    found = jobs.get(uid, user)
    if request.method != "POST":
        return _job(request, found, None)
    if "forget" in request.POST:
        services.forget_choice(user, found)
        return redirect("jobs:detail", uid)
    form = JobChoiceForm(request.POST, stored=lambda: _job_values(user, found))
    if form.is_valid():
        try:
            with form.saving():
                services.choose_for_job(user, found, form.values())
        except HeklaError as error:
            attach(form, error)
        else:
            messages.success(request, _("Saved."))
            return redirect("jobs:detail", uid)
    return _job(request, found, form)


def _job(request: HttpRequest, found: Job, form: JobChoiceForm | None) -> HttpResponse:
    user = person(request)
    values = _job_values(user, found)
    context = {
        "job": found,
        "form": form or JobChoiceForm(stored=lambda: values),
        "own": selectors.job_choice(user, found),
        "hears": bool(values["moments"] and values["channels"]),
    }
    return render(request, "notifications/_job.html" if form is None else "notifications/job.html", context)


def _job_values(user: User, found: Job) -> dict[str, Any]:
    """The settings in effect for the job. The defaults of others than its owner do not apply to it: no events."""
    own = selectors.job_choice(user, found) or (selectors.preference(user) if found.owner_id == user.pk else None)
    return JobChoiceForm.first(own or JobChoice(moments=[], channels=[Channel.PAGE]))
