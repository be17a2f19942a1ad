"""Pages of invitations: the list of a tenant, and the page that an invited person sees."""

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST

from hekla.apps.accounts.roles import Permission
from hekla.apps.forms import attach
from hekla.apps.invitations import letters, selectors, services
from hekla.apps.invitations.forms import InvitationForm, SignUpForm
from hekla.apps.invitations.models import Invitation
from hekla.apps.signin.limits import counted_by_address
from hekla.apps.tenancy import selectors as tenancy
from hekla.apps.tenancy import services as tenancy_services
from hekla.apps.tenancy.models import Tenant
from hekla.domain.errors import HeklaError, NotFound
from hekla.lib import clock
from hekla.pages.frame.people import person
from hekla.pages.frame.tables import listing
from hekla.pages.invitations.tables import InvitationsFilter, InvitationsTable
from hekla.pages.signin import entry


@require_http_methods(["GET", "POST"])
def invitations(request: HttpRequest, slug: str) -> HttpResponse:
    """List a tenant's open invitations, and invite a person."""
    tenant = _managed(request, slug)
    may_more = selectors.may_give_platform_roles(person(request))
    form = InvitationForm(request.POST or None, platform_roles=may_more)
    if request.method == "POST" and form.is_valid():
        try:
            made = services.invite(tenant, **form.cleaned_data, by=person(request), now=clock.now())
        except HeklaError as error:
            attach(form, error)
        else:
            return _link_page(request, *made)
    now, found = clock.now(), selectors.waiting(tenant)
    waiting = listing(request, InvitationsTable, found, InvitationsFilter, facts={"now": now, "tenant": tenant})
    context = {"tenant": tenant, "form": form, "waiting": waiting, "mail": settings.MAIL_IS_SET_UP}
    return render(request, "invitations/list.html", context)


@require_POST
def resend(request: HttpRequest, slug: str, invitation_id: int) -> HttpResponse:
    """Create a new link for an invitation."""
    tenant = _managed(request, slug)
    return _link_page(request, *services.resend(tenant, invitation_id, by=person(request), now=clock.now()))


@require_POST
def revoke(request: HttpRequest, slug: str, invitation_id: int) -> HttpResponse:
    """Revoke an invitation."""
    services.revoke(_managed(request, slug), invitation_id, by=person(request), now=clock.now())
    messages.success(request, _("Invitation revoked."))
    return redirect("invitations:list", slug)


@login_not_required
@counted_by_address
@never_cache
@sensitive_post_parameters("password")
@require_http_methods(["GET", "POST"])
def sign_up(request: HttpRequest, secret: str) -> HttpResponse:
    """The target of the link: create an account, or accept with an existing one."""
    try:
        invitation = selectors.by_secret(secret, now=clock.now())
    except NotFound as refusal:
        return _closed(request, refusal)
    meant = {"username": invitation.username, "display_name": invitation.display_name}
    form = SignUpForm(request.POST or None, initial=meant)
    if request.method == "POST" and form.is_valid():
        try:
            user = services.sign_up(secret, **form.cleaned_data, now=clock.now())
        except HeklaError as error:
            attach(form, error)
        else:
            entry.complete(request, user, method="invitation")
            return _welcome(request, invitation.tenant)
    here = reverse("invitations:sign_up", args=[secret])
    return render(
        request, "invitations/sign_up.html", {"invitation": invitation, "form": form, "secret": secret, "here": here}
    )


@require_POST
def accept(request: HttpRequest, secret: str) -> HttpResponse:
    """Let a signed-in person join the tenant."""
    try:
        tenant = services.accept(secret, person(request), now=clock.now())
    except NotFound as refusal:
        return _closed(request, refusal)
    return _welcome(request, tenant)


def _managed(request: HttpRequest, slug: str) -> Tenant:
    tenant = tenancy.get(slug, person(request))
    tenancy_services.require(person(request), tenant, Permission.MANAGE_MEMBERS)
    return tenant


def _link_page(request: HttpRequest, invitation: Invitation, secret: str) -> HttpResponse:
    link = request.build_absolute_uri(reverse("invitations:sign_up", args=[secret]))
    posted = letters.post([(invitation, link)], now=clock.now())
    context = {"invitation": invitation, "link": link, "is_mailed": invitation.pk in posted}
    return render(request, "invitations/link.html", context)


def _welcome(request: HttpRequest, tenant: Tenant) -> HttpResponse:
    request.session["tenant"] = tenant.slug
    messages.success(request, _("Welcome to %s.") % tenant)
    return redirect("home")


def _closed(request: HttpRequest, refusal: NotFound) -> HttpResponse:
    return render(request, "invitations/closed.html", {"refusal": refusal.message}, status=404)
