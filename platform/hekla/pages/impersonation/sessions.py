"""The session of an admin who begins or ends to act for somebody.

It gets another key, which ends the sockets that were opened by the one before, and forms are signed anew: a page of the
one person cannot be sent as the other.
"""

from django.http import HttpRequest
from django.middleware.csrf import rotate_token

from hekla.apps.impersonation.selectors import KEY


def enter(request: HttpRequest, acting_id: int) -> None:
    """From now on the session names this acting."""
    request.session[KEY] = acting_id
    _renew(request)


def leave(request: HttpRequest) -> None:
    """It names none any more."""
    request.session.pop(KEY, None)
    _renew(request)


def _renew(request: HttpRequest) -> None:
    request.session.cycle_key()
    rotate_token(request)
