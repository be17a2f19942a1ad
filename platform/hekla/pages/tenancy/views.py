"""Pages of tenants."""

from django.contrib import messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from hekla.apps.accounts import services as accounts
from hekla.apps.accounts.models import User
from hekla.apps.accounts.roles import Permission
from hekla.apps.accounts.services import actor_of
from hekla.apps.forms import attach, form_page
from hekla.apps.jobs import spending
from hekla.apps.quotas import services as quotas
from hekla.apps.tenancy import selectors, services
from hekla.apps.tenancy.models import Tenant
from hekla.domain.errors import HeklaError, Refused
from hekla.lib import clock
from hekla.pages.frame import current_tenant
from hekla.pages.frame.card_use import with_use
from hekla.pages.frame.people import person
from hekla.pages.frame.tables import Listing, listing
from hekla.pages.tenancy.forms import ROLES, MemberForm, NewTenantForm, RetentionForm, TenantChangeForm
from hekla.pages.tenancy.tables import MembersFilter, MembersTable, TenantsFilter, TenantsTable


@require_safe
def tenants(request: HttpRequest) -> HttpResponse:
    """List the tenants that the person may see."""
    found = selectors.with_member_counts(selectors.visible_to(person(request)))
    context = {
        "tenants": listing(
            request, TenantsTable, found.select_related("department"), TenantsFilter, **with_use(spending.of_tenants)
        ),
        "departments": selectors.departments_of(person(request)),
        "may_audit": selectors.may_audit(person(request)),
    }
    return render(request, "tenancy/list.html", context)


@require_http_methods(["GET", "POST"])
def create(request: HttpRequest) -> HttpResponse:
    """Add a tenant."""
    accounts.require(person(request), Permission.MANAGE_TENANTS)
    form = NewTenantForm(request.POST or None, initial=dict(quotas.DEFAULTS))
    if request.method == "POST" and form.is_valid():
        try:
            made = quotas.create_tenant(**form.values(), actor=actor_of(person(request)), now=clock.now())
        except HeklaError as error:
            attach(form, error)
        else:
            messages.success(request, _("Added %s. Now add its members.") % made)
            return redirect("tenancy:detail", made.slug)
    return form_page(request, form, title=_("Add tenant"), submit=_("Add"), cancel=reverse("tenancy:list"))


@require_safe
def detail(request: HttpRequest, slug: str) -> HttpResponse:
    """Show a tenant and its members."""
    return _detail_page(request, selectors.get(slug, person(request)))


@require_http_methods(["GET", "POST"])
def edit(request: HttpRequest, slug: str) -> HttpResponse:
    """Change a tenant."""
    accounts.require(person(request), Permission.MANAGE_TENANTS)
    tenant = selectors.get(slug, person(request))
    form = TenantChangeForm(request.POST or None, instance=tenant)
    if request.method == "POST" and form.is_valid():
        fresh = selectors.get(slug, person(request))
        try:
            with form.saving():
                services.change(fresh, form.cleaned_data, actor=actor_of(person(request)), now=clock.now())
        except HeklaError as error:
            attach(form, error)
        else:
            messages.success(request, _("Saved."))
            return redirect("tenancy:detail", slug)
    cancel = reverse("tenancy:detail", args=[slug])
    return form_page(request, form, title=tenant.name, submit=_("Save"), cancel=cancel)


@require_POST
def set_retention(request: HttpRequest, slug: str) -> HttpResponse:
    """Set how long logs and history of deleted jobs are retained."""
    tenant = selectors.get(slug, person(request))
    services.require(person(request), tenant, Permission.SET_RETENTION)
    form = RetentionForm(request.POST, stored=lambda: _retention(selectors.get(slug, person(request))))
    if form.is_valid():
        try:
            with form.saving():
                services.set_retention(tenant, **form.cleaned_data, actor=actor_of(person(request)), now=clock.now())
        except HeklaError as error:
            attach(form, error)
        else:
            messages.success(request, _("Saved."))
            return redirect("tenancy:detail", slug)
    return _detail_page(request, tenant, retention=form)


def _retention(tenant: Tenant) -> dict[str, int]:
    return {"log_days": tenant.log_days, "history_days": tenant.history_days}


@require_POST
def add_member(request: HttpRequest, slug: str) -> HttpResponse:
    """Add a member."""
    tenant = _managed(request, slug)
    form = MemberForm(request.POST, offered=_strangers(person(request), tenant))
    if form.is_valid():
        user, role = form.cleaned_data["user"], form.cleaned_data["role"]
        try:
            services.add_member(tenant, user, role, actor=actor_of(person(request)), now=clock.now())
        except HeklaError as error:
            attach(form, error)
        else:
            messages.success(request, _("%s is now a member.") % user)
            return redirect("tenancy:detail", slug)
    return _detail_page(request, tenant, form)


@require_POST
def change_role(request: HttpRequest, slug: str, user_id: int) -> HttpResponse:
    """Change the role of a member."""
    tenant, role = _managed(request, slug), request.POST.get("role", "")
    if role not in dict(ROLES):
        raise Refused(_("Unknown role."))
    services.change_role(tenant, user_id, role, actor=actor_of(person(request)), now=clock.now())
    messages.success(request, _("Saved."))
    return redirect("tenancy:detail", slug)


@require_POST
def remove_member(request: HttpRequest, slug: str, user_id: int) -> HttpResponse:
    """Remove a member."""
    tenant = _managed(request, slug)
    services.remove_member(tenant, user_id, actor=actor_of(person(request)), now=clock.now())
    messages.success(request, _("Removed."))
    return redirect("tenancy:detail", slug)


@require_POST
def switch(request: HttpRequest) -> HttpResponse:
    """Switch to another of the person's tenants, which lists then show alone; without a tenant, lists show all."""
    if request.POST.get("tenant") == "":
        request.session.pop(current_tenant.SCOPE, None)
    else:
        slug = selectors.get(request.POST.get("tenant", "-"), person(request)).slug
        request.session["tenant"] = request.session[current_tenant.SCOPE] = slug
    target = request.POST.get("next", "")
    safe = url_has_allowed_host_and_scheme(target, {request.get_host()})
    return redirect(target if safe else "home")


def _managed(request: HttpRequest, slug: str) -> Tenant:
    tenant = selectors.get(slug, person(request))
    may = selectors.may(person(request), tenant.pk, Permission.MANAGE_MEMBERS)
    if not may:
        accounts.require(person(request), Permission.MANAGE_TENANTS)
    return tenant


def _detail_page(
    request: HttpRequest, tenant: Tenant, form: MemberForm | None = None, retention: RetentionForm | None = None
) -> HttpResponse:
    user = person(request)
    may_manage = selectors.may(user, tenant.pk, Permission.MANAGE_MEMBERS)
    context = {
        "tenant": tenant,
        "members": _members(request, tenant, may_manage=may_manage),
        "form": form or MemberForm(offered=_strangers(user, tenant)),
        "may_audit": selectors.may(user, tenant.pk, Permission.SEE_AUDIT),
        "may_manage": may_manage,
        "retention": retention or RetentionForm(stored=lambda: _retention(tenant)),
        "may_set_alert_rules": selectors.may(user, tenant.pk, Permission.SET_ALERT_RULES),
        "may_set_idle_rule": selectors.may(user, tenant.pk, Permission.SET_IDLE_RULE),
        "may_set_retention": selectors.may(user, tenant.pk, Permission.SET_RETENTION),
    }
    return render(request, "tenancy/detail.html", context)


def _strangers(user: User, tenant: Tenant) -> QuerySet[User]:
    """The people that the person can see and who are no members yet."""
    known = selectors.known_people(user).filter(is_active=True)
    return known.exclude(pk__in=selectors.members(tenant).order_by().values("user_id"))


def _members(request: HttpRequest, tenant: Tenant, *, may_manage: bool) -> Listing:
    return listing(
        request,
        MembersTable,
        selectors.members(tenant),
        MembersFilter,
        exclude=() if may_manage else ("last_login", "actions"),
        facts={"tenant": tenant, "roles": ROLES, "may_manage": may_manage},
        address=reverse("tenancy:detail", args=[tenant.slug]),
    )
