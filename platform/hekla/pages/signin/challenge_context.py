"""Asking a browser for a key: what a page needs for it, and what it says where it cannot be."""

from collections.abc import Callable
from dataclasses import dataclass

from django.http import HttpRequest

from hekla.apps.accounts.models import User
from hekla.apps.signin import challenges, keys
from hekla.apps.signin.challenges import Purpose
from hekla.apps.signin.relying_party import RelyingParty, relying_party

_Question = Callable[[RelyingParty, User, bytes], str]
_QUESTIONS: dict[Purpose, _Question] = {Purpose.ADD: keys.to_make, Purpose.USE: keys.to_sign}


@dataclass(frozen=True, slots=True)
class Asking:
    """`options` for the browser; empty where it cannot ask: then keys work at `elsewhere`, or for nobody."""

    options: str = ""
    elsewhere: str = ""


def ask(request: HttpRequest, purpose: Purpose, user: User) -> Asking:
    """For this page, with a challenge of its own."""
    party = relying_party()
    if party is None:
        return Asking()
    if party.netloc != request.get_host().lower():
        return Asking(elsewhere=party.origin)
    return Asking(_QUESTIONS[purpose](party, user, challenges.hand_out(request, purpose, user)))
