"""The forms that prove the second factor: a code or a security key, side by side on one page."""

from django.http import HttpRequest

from hekla.apps.accounts.models import User
from hekla.apps.forms import attach
from hekla.apps.signin import challenges, selectors, services
from hekla.apps.signin.challenges import Purpose
from hekla.domain.errors import HeklaError
from hekla.lib import clock
from hekla.pages.signin import challenge_context
from hekla.pages.signin.forms import CodeForm, KeyForm

Proof = CodeForm | KeyForm


def sent(request: HttpRequest) -> Proof:
    """The submitted form; an empty code form if none was submitted."""
    return KeyForm(request.POST) if "credential" in request.POST else CodeForm(request.POST or None)


def holds(request: HttpRequest, proof: Proof, user: User) -> bool:
    """Whether the form proves this person; if not, the form has the reason."""
    if not proof.is_valid():
        return False
    try:
        _prove(request, proof, user)
    except HeklaError as error:
        attach(proof, error)
    return proof.is_valid()


def proof_context(request: HttpRequest, proof: Proof, user: User) -> dict[str, object]:
    """Both forms for a template, with the errors of the submitted one, and the challenge for a key."""
    has_key = selectors.keys_of(user).exists()
    return {
        "form": CodeForm() if isinstance(proof, KeyForm) else proof,
        "key_form": proof if isinstance(proof, KeyForm) else KeyForm(),
        "key": challenge_context.ask(request, Purpose.USE, user) if has_key else None,
    }


def _prove(request: HttpRequest, proof: Proof, user: User) -> None:
    now = clock.now()
    if isinstance(proof, CodeForm):
        services.prove(user, proof.cleaned_data["code"], now=now)
    else:
        challenge = challenges.take(request, Purpose.USE, user)
        services.prove_with_key(user, answer=proof.cleaned_data["credential"], challenge=challenge, now=now)
