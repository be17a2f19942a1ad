"""The page of presets, and actions on them."""

from uuid import UUID

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from hekla.apps.presets import selectors, services
from hekla.apps.presets.models import Preset
from hekla.domain.errors import Forbidden, Refused
from hekla.lib import clock
from hekla.pages.frame.people import person
from hekla.pages.frame.tables import listing
from hekla.pages.submit.tables import PresetsFilter, PresetsTable


@require_safe
def presets(request: HttpRequest) -> HttpResponse:
    """List the person's presets, and those of their tenants."""
    user = person(request)

    def rows(presets: list[Preset]) -> list[tuple[Preset, bool]]:
        return list(zip(presets, selectors.may_change_each(user, presets), strict=True))

    found = listing(request, PresetsTable, selectors.visible_to(user), PresetsFilter, rows=rows)
    return render(request, "jobs/presets.html", {"presets": found})


@require_safe
def former_address(request: HttpRequest) -> HttpResponse:
    """Redirect from the former address of the page."""
    return redirect(reverse("jobs:presets", query=request.GET or None), permanent=True)


@require_POST
def rename(request: HttpRequest, uid: UUID) -> HttpResponse:
    """Rename a preset. A refusal is shown above the list."""
    preset = selectors.get(uid, person(request))
    try:
        services.rename(preset, request.POST.get("name", ""), user=person(request), now=clock.now())
    except Forbidden:
        raise
    except Refused as error:
        messages.error(request, error.message)
    return redirect("jobs:presets")


@require_POST
def choose(request: HttpRequest, uid: UUID) -> HttpResponse:
    """Make the preset the default for new jobs, or no longer."""
    preset = selectors.get(uid, person(request))
    is_default = request.POST.get("default") == "yes"
    services.set_default(preset, is_default=is_default, user=person(request), now=clock.now())
    return redirect("jobs:presets")


@require_POST
def delete(request: HttpRequest, uid: UUID) -> HttpResponse:
    """Delete a preset."""
    preset = selectors.get(uid, person(request))
    services.delete(preset, user=person(request), now=clock.now())
    messages.success(request, _("Deleted template “%s”.") % preset.name)
    return redirect("jobs:presets")
