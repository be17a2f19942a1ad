"""Pages about people: one's own profile, and all people (for platform admins)."""

from datetime import timedelta
from functools import partial

from django.contrib import messages
from django.contrib.auth import update_session_auth_hash
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from hekla.apps.accounts import selectors, services
from hekla.apps.accounts.models import User
from hekla.apps.accounts.roles import Permission
from hekla.apps.accounts.scopes import Scope
from hekla.apps.forms import attach, form_page
from hekla.apps.jobs import spending
from hekla.apps.jobs.spending import CardSpending
from hekla.apps.tenancy import selectors as tenancy
from hekla.apps.tenancy.selectors import NamedTenant
from hekla.domain.errors import HeklaError
from hekla.lib import clock
from hekla.pages.accounts.forms import PersonChangeForm, PersonForm, ProfileForm, TokenForm
from hekla.pages.accounts.tables import PeopleFilter, PeopleTable
from hekla.pages.frame.card_use import with_use
from hekla.pages.frame.paging import paged
from hekla.pages.frame.people import person
from hekla.pages.frame.tables import listing
from hekla.pages.signin.entry import freshly_proved

_TOKENS = 20


@require_safe
def people(request: HttpRequest) -> HttpResponse:
    """List all people."""
    services.require(person(request), Permission.MANAGE_PEOPLE)
    tenants: dict[int, list[NamedTenant]] = {}

    def with_tenants(records: list[User]) -> list[User]:
        tenants.update(tenancy.named_by_member([one.pk for one in records]))
        return records

    options = with_use(spending.of_people, with_tenants, tenants=tenants)
    people = listing(request, PeopleTable, selectors.everybody(), PeopleFilter, **options)
    return render(request, "accounts/list.html", {"people": people})


@sensitive_post_parameters("password", "current_password")
@require_http_methods(["GET", "POST"])
def create(request: HttpRequest) -> HttpResponse:
    """Add a person."""
    services.require(person(request), Permission.MANAGE_PEOPLE)
    form = PersonForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        try:
            _prove_admin(person(request), form)
            made = services.create_user(
                username=form.cleaned_data["username"],
                password=form.cleaned_data["password"] or None,
                display_name=form.cleaned_data["display_name"],
                platform_role=form.cleaned_data["platform_role"],
                actor=services.actor_of(person(request)),
                now=clock.now(),
            )
        except HeklaError as error:
            attach(form, error)
        else:
            messages.success(request, _("Added %s.") % made)
            return redirect("accounts:edit", made.pk)
    return form_page(request, form, title=_("Add person"), submit=_("Add"), cancel=reverse("accounts:list"))


@sensitive_post_parameters("password", "current_password")
@require_http_methods(["GET", "POST"])
def edit(request: HttpRequest, user_id: int) -> HttpResponse:
    """Change a person."""
    services.require(person(request), Permission.MANAGE_PEOPLE)
    user = get_object_or_404(selectors.everybody(), pk=user_id)
    form = PersonChangeForm(request.POST or None, instance=user)
    if request.method == "POST" and form.is_valid():
        fresh = get_object_or_404(selectors.everybody(), pk=user_id)
        try:
            _prove_admin(person(request), form)
            with form.saving():
                services.change_user(
                    fresh,
                    form.values(),
                    password=form.cleaned_data["password"] or None,
                    actor=services.actor_of(person(request)),
                    now=clock.now(),
                    revokes_tokens=form.cleaned_data["revokes_tokens"],
                )
        except HeklaError as error:
            attach(form, error)
        else:
            messages.success(request, _("Saved."))
            return redirect("accounts:list")
    context = {
        "form": form,
        "title": str(user),
        "submit": _("Save"),
        "cancel": reverse("accounts:list"),
        "person": user,
        "memberships": user.memberships.select_related("tenant").order_by("tenant__name"),
        "spending": spending.of_people([user.pk], clock.now()).get(user.pk, CardSpending()),
        "may_act_for": selectors.may_act_for(person(request), user),
    }
    return render(request, "accounts/edit.html", context)


def _prove_admin(admin: User, form: PersonForm) -> None:
    """A session alone gives nobody a password or a platform role. Raises Invalid, Refused."""
    if form.cleaned_data["password"] or "platform_role" in form.changed_data:
        services.prove_password(admin, form.cleaned_data["current_password"])


@require_POST
def give_link(request: HttpRequest, user_id: int) -> HttpResponse:
    """Create a sign-in link for a person, and show it once."""
    services.require(person(request), Permission.MANAGE_PEOPLE)
    return _give_link(request, user_id)


@partial(freshly_proved, page="accounts:edit")
def _give_link(request: HttpRequest, user_id: int) -> HttpResponse:
    user = get_object_or_404(selectors.everybody(), pk=user_id)
    secret = services.issue_link(user, actor=services.actor_of(person(request)), now=clock.now())
    link = request.build_absolute_uri(reverse("accounts:use_link", args=[secret]))
    return render(request, "accounts/link.html", {"person": user, "link": link})


@sensitive_post_parameters("password", "current_password")
@require_http_methods(["GET", "POST"])
def profile(request: HttpRequest) -> HttpResponse:
    """Show and change one's own name and password; list one's API tokens."""
    user = person(request)
    form = ProfileForm(request.POST or None, instance=user)
    if request.method == "POST" and form.is_valid():
        password = form.cleaned_data["password"] or None
        try:
            if password:
                services.prove_password(user, form.cleaned_data["current_password"])
            with form.saving():
                services.change_user(
                    user,
                    {name: form.cleaned_data[name] for name in ("display_name", "time_zone")},
                    password=password,
                    actor=services.actor_of(user),
                    now=clock.now(),
                    revokes_tokens=form.cleaned_data["revokes_tokens"],
                )
        except HeklaError as error:
            attach(form, error)
        else:
            update_session_auth_hash(request, user)
            messages.success(request, _("Saved."))
            return redirect("accounts:profile")
    return _profile_page(request, form, TokenForm())


@sensitive_post_parameters("current_password")
@require_POST
def create_token(request: HttpRequest) -> HttpResponse:
    """Create an API token, and show it once."""
    user, form = person(request), TokenForm(request.POST)
    if not form.is_valid():
        return _profile_page(request, ProfileForm(instance=user), form)
    cleaned, lifetime = form.cleaned_data, timedelta(days=form.cleaned_data["days"])
    try:
        if Scope.ADMIN in cleaned["scopes"]:
            services.prove_password(user, cleaned["current_password"])
        secret = services.create_token(
            user, name=cleaned["name"], lifetime=lifetime, scopes=cleaned["scopes"], now=clock.now()
        )
    except HeklaError as error:
        attach(form, error)
        return _profile_page(request, ProfileForm(instance=user), form)
    return _profile_page(request, ProfileForm(instance=user), TokenForm(), secret=secret)


@require_POST
def revoke_token(request: HttpRequest, token_id: int) -> HttpResponse:
    """Revoke an API token."""
    services.revoke_token(person(request), token_id, now=clock.now())
    messages.success(request, _("Token revoked."))
    return redirect("accounts:profile")


def _profile_page(request: HttpRequest, form: ProfileForm, token_form: TokenForm, secret: str = "") -> HttpResponse:
    tokens = paged(request, selectors.tokens_of(person(request)), size=_TOKENS, address=reverse("accounts:profile"))
    context = {"form": form, "token_form": token_form, "tokens": tokens, "secret": secret, "now": clock.now()}
    return render(request, "accounts/profile.html", context)
