"""Pages about departments; that of one department is put together in `hekla.project`, since it shows what jobs hold."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_safe

from hekla.apps.accounts import services as accounts
from hekla.apps.accounts.roles import Permission
from hekla.apps.accounts.services import actor_of
from hekla.apps.forms import attach, form_page
from hekla.apps.people import person
from hekla.apps.tenancy import departments, selectors
from hekla.apps.tenancy.forms import DepartmentChangeForm, DepartmentForm
from hekla.domain.errors import HeklaError
from hekla.lib import clock


@require_safe
def listed(request: HttpRequest) -> HttpResponse:
    """The departments that one heads, or all."""
    return render(request, "tenancy/departments.html", {"departments": selectors.departments_of(person(request))})


@require_http_methods(["GET", "POST"])
def create(request: HttpRequest) -> HttpResponse:
    """A new department."""
    accounts.require(person(request), Permission.MANAGE_TENANTS)
    form = DepartmentForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        try:
            made = departments.create(**form.cleaned_data, actor=actor_of(person(request)), now=clock.now())
        except HeklaError as error:
            attach(form, error)
        else:
            messages.success(request, _("%s was added.") % made)
            return redirect("departments:detail", made.slug)
    return form_page(request, form, title=_("Add a department"), submit=_("Add"), cancel=reverse("departments:list"))


@require_http_methods(["GET", "POST"])
def edit(request: HttpRequest, slug: str) -> HttpResponse:
    """Change a department, its heads and its tenants."""
    accounts.require(person(request), Permission.MANAGE_TENANTS)
    department = selectors.department(slug, person(request))
    form = DepartmentChangeForm(request.POST or None, instance=department)
    if request.method == "POST" and form.is_valid():
        wish = dict(form.cleaned_data)
        sets = {"heads": wish.pop("heads"), "tenants": wish.pop("tenants")}
        try:
            departments.change(department, wish, **sets, actor=actor_of(person(request)), now=clock.now())
        except HeklaError as error:
            attach(form, error)
        else:
            messages.success(request, _("Saved."))
            return redirect("departments:detail", slug)
    return form_page(
        request,
        form,
        title=department.name,
        submit=_("Save"),
        cancel=reverse("departments:detail", args=[slug]),
    )
