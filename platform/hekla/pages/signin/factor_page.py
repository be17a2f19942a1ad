"""The page where people manage their second factors."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.safestring import mark_safe

from hekla.apps.accounts.models import User
from hekla.apps.signin import codes, selectors, services
from hekla.apps.signin.challenges import Purpose
from hekla.apps.signin.models import SecondFactor
from hekla.pages.frame.people import person
from hekla.pages.frame.tables import listing
from hekla.pages.signin import challenge_context
from hekla.pages.signin.forms import ConfirmationForm, NewKeyForm
from hekla.pages.signin.tables import KeysTable


def factor_page(
    request: HttpRequest, *, form: ConfirmationForm | None = None, key_form: NewKeyForm | None = None
) -> HttpResponse:
    """The page, with the errors of a submitted form."""
    user = person(request)
    factor, keys = selectors.factor_of(user), selectors.keys_of(user)
    context = {
        "factor": factor,
        "form": form or ConfirmationForm(),
        "keys": listing(request, KeysTable, keys, address=reverse("accounts:second_factor")),
        "has_most": len(keys) >= services.MOST_KEYS,
        "key_form": key_form or NewKeyForm(),
        "key": challenge_context.ask(request, Purpose.ADD, user),
        "is_on": selectors.has_second_factor(user),
        "must": selectors.must_have(user),
        "left": selectors.codes_left(user),
        **_to_scan(factor, user),
    }
    return render(request, "signin/second_factor.html", context)


def recovery_codes_page(request: HttpRequest, fresh: list[str]) -> HttpResponse:
    """The new recovery codes after a factor was added; without new ones, a redirect to the page."""
    if not fresh:
        return redirect("accounts:second_factor")
    return render(request, "signin/recovery_codes.html", {"codes": "\n".join(fresh), "is_new": True})


def _to_scan(factor: SecondFactor | None, user: User) -> dict[str, str]:
    """The secret as a QR code and as text, until it is confirmed."""
    if factor is None or factor.confirmed_at is not None:
        return {}
    secret = services.secret_of(factor)
    return {"picture": mark_safe(codes.picture(secret, user.username)), "secret": secret}  # noqa: S308  (Hekla drew it)
