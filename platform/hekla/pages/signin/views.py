"""The pages of the sign-in and of the second factor."""

from functools import partial

from django.contrib import messages
from django.contrib.auth import authenticate
from django.contrib.auth.decorators import login_not_required
from django.contrib.auth.forms import AuthenticationForm
from django.contrib.auth.views import LoginView
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.decorators import method_decorator
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from hekla.apps.accounts import selectors as accounts
from hekla.apps.accounts import services as account_services
from hekla.apps.accounts.models import User
from hekla.apps.accounts.roles import Permission
from hekla.apps.forms import attach
from hekla.apps.signin import selectors, services, slowdown
from hekla.apps.signin.limits import counted_by_address, too_many
from hekla.domain.errors import HeklaError, NotFound
from hekla.lib import clock
from hekla.pages.frame.people import person
from hekla.pages.signin import entry, proofs
from hekla.pages.signin.entry import freshly_proved
from hekla.pages.signin.factor_page import factor_page, recovery_codes_page
from hekla.pages.signin.forms import ConfirmationForm, PasswordForm, SignInForm


@method_decorator(counted_by_address, name="post")
class SignIn(LoginView):
    """Sign in by user name and password."""

    template_name = "signin/sign_in.html"
    form_class = SignInForm
    redirect_authenticated_user = True

    def form_valid(self, form: AuthenticationForm) -> HttpResponse:
        """Continue the sign-in after a correct password."""
        user = form.get_user()
        assert isinstance(user, User)  # noqa: S101  (there is no other user model)
        return entry.enter(self.request, user, method="password", target=self.get_success_url())

    def form_invalid(self, form: AuthenticationForm) -> HttpResponse:
        """Show the form with its problems; after too many wrong passwords, say when to try again."""
        if isinstance(form, SignInForm) and form.wait:
            return too_many(self.request, form.wait, "name")
        return super().form_invalid(form)


@login_not_required
@counted_by_address
@require_http_methods(["GET", "POST"])
def use_link(request: HttpRequest, secret: str) -> HttpResponse:
    """A one-time link: the page shows a button that signs in, so that link previews do not use up the link."""
    if request.method == "GET":
        return render(request, "signin/use_link.html")
    try:
        user = account_services.use_link(secret, now=clock.now())
    except NotFound as refusal:
        return render(request, "signin/use_link.html", {"refusal": refusal.message}, status=404)
    return entry.enter(request, user, method="link")


@login_not_required
@counted_by_address
@never_cache
@sensitive_post_parameters("code")
@require_http_methods(["GET", "POST"])
def second_step(request: HttpRequest) -> HttpResponse:
    """Ask for a code or key after a password or link."""
    half = entry.half_way(request)
    if half is None:
        return redirect("accounts:sign_in")
    proof = proofs.sent(request)
    if request.method == "POST" and proofs.holds(request, proof, half.user):
        return entry.complete(request, half.user, method=half.method, target=half.target)
    return render(request, "signin/second_step.html", proofs.proof_context(request, proof, half.user))


@never_cache
@sensitive_post_parameters()
@require_http_methods(["GET", "POST"])
def prove(request: HttpRequest) -> HttpResponse:
    """Ask a signed-in person to prove their identity again: by the second factor, or without one by the password."""
    user, next_url = person(request), request.POST.get("next") or request.GET.get("next", "")
    target = next_url if url_has_allowed_host_and_scheme(next_url, {request.get_host()}) else "accounts:profile"
    if not selectors.has_second_factor(user):
        return _prove_by_password(request, user, next_url, target)
    proof = proofs.sent(request)
    if request.method == "POST" and proofs.holds(request, proof, user):
        return _proved(request, target)
    return render(
        request, "signin/prove.html", {"next": next_url, "can": True, **proofs.proof_context(request, proof, user)}
    )


def _prove_by_password(request: HttpRequest, user: User, next_url: str, target: str) -> HttpResponse:
    form = PasswordForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        if wait := slowdown.attempt(user.username, request.META.get("REMOTE_ADDR", ""), now=clock.now()):
            return too_many(request, wait, "name")
        if authenticate(request, username=user.username, password=form.cleaned_data["password"]) == user:
            slowdown.succeeded(user.username)
            return _proved(request, target)
        form.add_error("password", _("Wrong password."))
    return render(request, "signin/prove.html", {"form": form, "next": next_url, "can": user.has_usable_password()})


def _proved(request: HttpRequest, target: str) -> HttpResponse:
    entry.note_proof(request)
    return redirect(target)


@never_cache
@require_safe
@freshly_proved
def second_factor(request: HttpRequest) -> HttpResponse:
    """Show and manage the person's second factors."""
    return factor_page(request)


@require_POST
@freshly_proved
def begin(request: HttpRequest) -> HttpResponse:
    """Create a secret for an authenticator app."""
    services.begin(person(request), now=clock.now())
    return redirect("accounts:second_factor")


@never_cache
@require_POST
@freshly_proved
def confirm(request: HttpRequest) -> HttpResponse:
    """Turn on the authenticator app after its first correct code."""
    form = ConfirmationForm(request.POST)
    if form.is_valid():
        try:
            fresh = services.confirm(person(request), form.cleaned_data["code"], now=clock.now())
        except HeklaError as error:
            attach(form, error)
        else:
            return recovery_codes_page(request, fresh)
    return factor_page(request, form=form)


@never_cache
@require_POST
@freshly_proved
def renew_codes(request: HttpRequest) -> HttpResponse:
    """Create new recovery codes, and show them once."""
    fresh = services.renew_codes(person(request), now=clock.now())
    return render(request, "signin/recovery_codes.html", {"codes": "\n".join(fresh)})


@require_POST
@freshly_proved
def remove(request: HttpRequest) -> HttpResponse:
    """Turn off the authenticator app."""
    services.remove(person(request), now=clock.now())
    messages.success(request, _("Authenticator app turned off."))
    return redirect("accounts:second_factor")


@require_POST
def reset(request: HttpRequest, user_id: int) -> HttpResponse:
    """Turn off the two-factor authentication of a person who lost it, as a platform admin."""
    account_services.require(person(request), Permission.MANAGE_PEOPLE)
    return _reset(request, user_id)


@partial(freshly_proved, page="accounts:edit")
def _reset(request: HttpRequest, user_id: int) -> HttpResponse:
    user = get_object_or_404(accounts.everybody(), pk=user_id)
    services.reset(user, by=person(request), now=clock.now())
    messages.success(request, _("Two-factor authentication turned off for %s.") % user)
    return redirect("accounts:edit", user_id)
