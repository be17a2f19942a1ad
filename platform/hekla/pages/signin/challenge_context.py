"""The WebAuthn challenge of a page, or the reason why security keys cannot be used there."""

from collections.abc import Callable
from dataclasses import dataclass

from django.http import HttpRequest

from hekla.apps.accounts.models import User
from hekla.apps.signin import challenges, keys
from hekla.apps.signin.challenges import Purpose
from hekla.apps.signin.relying_party import RelyingParty, relying_party

_Options = Callable[[RelyingParty, User, bytes], str]
_OPTIONS: dict[Purpose, _Options] = {
    Purpose.ADD: keys.registration_options,
    Purpose.USE: keys.authentication_options,
}


@dataclass(frozen=True, slots=True)
class KeyChallenge:
    """`options`: for the browser; empty if keys do not work here. `elsewhere`: the origin where they work; empty if
    none.
    """

    options: str = ""
    elsewhere: str = ""


def ask(request: HttpRequest, purpose: Purpose, user: User) -> KeyChallenge:
    """The challenge options for this page."""
    party = relying_party()
    if party is None:
        return KeyChallenge()
    if party.netloc != request.get_host().lower():
        return KeyChallenge(elsewhere=party.origin)
    return KeyChallenge(_OPTIONS[purpose](party, user, challenges.hand_out(request, purpose, user)))
