"""The page on which a person manages what proves them besides the password."""

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
    """All that there is, with what was wrong with a form that was sent."""
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
    """After a factor was added: the recovery codes that came with it, or where there were some, back to the page."""
    if not fresh:
        return redirect("accounts:second_factor")
    return render(request, "signin/recovery_codes.html", {"codes": "\n".join(fresh), "is_new": True})


def _to_scan(factor: SecondFactor | None, user: User) -> dict[str, str]:
    """The secret as a picture and as text, while it is not confirmed."""
    if factor is None or factor.confirmed_at is not None:
        return {}
    secret = services.secret_of(factor)
    return {"picture": mark_safe(codes.picture(secret, user.username)), "secret": secret}  # noqa: S308  (we drew it)
