"""Pages of departments."""

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
from hekla.apps.tenancy import departments, selectors
from hekla.apps.usage import holdings
from hekla.domain.errors import HeklaError
from hekla.lib import clock
from hekla.pages.departments.tables import (
    DEPARTMENT_TENANTS_SEARCH,
    DepartmentsFilter,
    DepartmentsTable,
    DepartmentTenant,
    DepartmentTenantsTable,
)
from hekla.pages.frame.people import person
from hekla.pages.frame.tables import listing
from hekla.pages.tenancy.forms import DepartmentChangeForm, DepartmentForm


@require_safe
def listed(request: HttpRequest) -> HttpResponse:
    """List the departments that the person heads, or all."""
    found = selectors.departments_of(person(request))
    departments_listed = listing(request, DepartmentsTable, found, DepartmentsFilter)
    return render(request, "tenancy/departments.html", {"departments": departments_listed})


@require_http_methods(["GET", "POST"])
def create(request: HttpRequest) -> HttpResponse:
    """Add a department."""
    accounts.require(person(request), Permission.MANAGE_TENANTS)
    form = DepartmentForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        try:
            made = departments.create(**form.cleaned_data, actor=actor_of(person(request)), now=clock.now())
        except HeklaError as error:
            attach(form, error)
        else:
            messages.success(request, _("Added %s.") % made)
            return redirect("departments:detail", made.slug)
    return form_page(request, form, title=_("Add department"), submit=_("Add"), cancel=reverse("departments:list"))


@require_http_methods(["GET", "POST"])
def edit(request: HttpRequest, slug: str) -> HttpResponse:
    """Change a department, its heads and its tenants."""
    accounts.require(person(request), Permission.MANAGE_TENANTS)
    department = selectors.department(slug, person(request))
    form = DepartmentChangeForm(request.POST or None, instance=department)
    if request.method == "POST" and form.is_valid():
        changes = dict(form.cleaned_data)
        sets = {"heads": changes.pop("heads"), "tenants": changes.pop("tenants")}
        try:
            with form.saving():
                departments.change(department, changes, **sets, actor=actor_of(person(request)), now=clock.now())
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


@require_safe
def detail(request: HttpRequest, slug: str) -> HttpResponse:
    """Show a department: its heads and its tenants, with what they hold, each and in total."""
    department = selectors.department(slug, person(request))
    tenants = list(selectors.with_member_counts(selectors.tenants_in(department)))
    held = holdings.by_tenant([tenant.pk for tenant in tenants])
    rows = [DepartmentTenant(tenant, held[tenant.pk]) for tenant in tenants]
    facts = {"together": sum(held.values(), holdings.Holding()), "people": selectors.people_in(department)}
    context = {
        "department": department,
        "heads": selectors.heads(department),
        "tenants": listing(request, DepartmentTenantsTable, rows, DEPARTMENT_TENANTS_SEARCH, facts=facts),
        "has_tenants": bool(rows),
    }
    return render(request, "tenancy/department.html", context)
