"""The session of an admin who starts or stops acting for a person.

Its key changes, which closes the sockets of the old key, and so does the CSRF token: a page of one person cannot be
submitted as the other.
"""

from django.http import HttpRequest
from django.middleware.csrf import rotate_token

from hekla.apps.impersonation.selectors import KEY


def enter(request: HttpRequest, acting_id: int) -> None:
    """Start impersonation in this session."""
    request.session[KEY] = acting_id
    _renew(request)


def leave(request: HttpRequest) -> None:
    """Stop impersonation in this session."""
    request.session.pop(KEY, None)
    _renew(request)


def _renew(request: HttpRequest) -> None:
    request.session.cycle_key()
    rotate_token(request)
