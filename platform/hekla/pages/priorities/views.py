"""Pages of priority classes."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from hekla.apps.accounts import selectors as accounts
from hekla.apps.accounts.roles import Permission
from hekla.apps.accounts.services import actor_of, require
from hekla.apps.forms import attach
from hekla.apps.priorities import selectors, services
from hekla.domain.errors import HeklaError
from hekla.lib import clock
from hekla.pages.frame.people import person
from hekla.pages.frame.tables import listing
from hekla.pages.priorities.forms import PriorityClassChangeForm, PriorityClassForm
from hekla.pages.priorities.tables import PriorityClassesFilter, PriorityClassesTable


@require_safe
def show(request: HttpRequest) -> HttpResponse:
    """List the priority classes that the person can use. People who manage them see all, with their tenants."""
    user = person(request)
    manages = accounts.may(user, Permission.MANAGE_PRIORITY_CLASSES)
    classes = listing(
        request,
        PriorityClassesTable,
        selectors.visible_to(user),
        PriorityClassesFilter,
        exclude=() if manages else ("tenants", "actions"),
        facts={"manages": manages},
    )
    return render(request, "priorities/list.html", {"classes": classes, "manages": manages})


@require_http_methods(["GET", "POST"])
def create(request: HttpRequest) -> HttpResponse:
    """Add a priority class."""
    require(person(request), Permission.MANAGE_PRIORITY_CLASSES)
    form = PriorityClassForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        cleaned, actor = form.cleaned_data, actor_of(person(request))
        try:
            services.create(
                name=cleaned["name"], values=form.values(), tenants=cleaned["tenants"], actor=actor, now=clock.now()
            )
        except HeklaError as error:
            attach(form, error)
        else:
            messages.success(request, _("Saved."))
            return redirect("priorities:list")
    context = {"form": form, "title": _("Add priority class"), "submit": _("Add")}
    return render(request, "form_page.html", context | {"cancel": reverse("priorities:list")})


@require_http_methods(["GET", "POST"])
def edit(request: HttpRequest, name: str) -> HttpResponse:
    """Change a priority class."""
    require(person(request), Permission.MANAGE_PRIORITY_CLASSES)
    form = PriorityClassChangeForm(request.POST or None, instance=selectors.get(name, person(request)))
    if request.method == "POST" and form.is_valid():
        fresh, tenants = selectors.get(name, person(request)), form.cleaned_data["tenants"]
        try:
            with form.saving():
                services.change(fresh, form.values(), tenants=tenants, actor=actor_of(person(request)), now=clock.now())
        except HeklaError as error:
            attach(form, error)
        else:
            messages.success(request, _("Saved. The change applies to new jobs."))
            return redirect("priorities:list")
    context = {"form": form, "title": name, "submit": _("Save"), "cancel": reverse("priorities:list")}
    return render(request, "form_page.html", context)


@require_POST
def delete(request: HttpRequest, name: str) -> HttpResponse:
    """Delete a priority class."""
    require(person(request), Permission.MANAGE_PRIORITY_CLASSES)
    services.delete(selectors.get(name, person(request)), actor=actor_of(person(request)), now=clock.now())
    messages.success(request, _("Priority class deleted. Existing jobs keep their priority."))
    return redirect("priorities:list")
