"""Who sends a request, known before Django authenticates it: from the answer to an earlier request.

A credential (session or token) that was never authenticated in this process counts for its client address. So nobody
gains more by inventing credentials.
"""

import hashlib
from collections import OrderedDict
from collections.abc import Callable, Mapping, MutableMapping
from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponseBase
from django.http.cookie import parse_cookie

from hekla.apps.accounts.models import User

Scope = MutableMapping[str, Any]
PERSON = "hekla.person"
MAX_CREDENTIALS = 20_000
_known: OrderedDict[bytes, str] = OrderedDict()


class CallerMiddleware:
    """Leaves the authenticated person in the scope of the request, for `learn`."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """Handle the request. The person is known afterwards: the API authenticates tokens in its views."""
        response = self.get_response(request)
        scope: Scope | None = getattr(request, "scope", None)
        if scope is not None and isinstance(request.user, User):
            scope[PERSON] = key_of(request.user)
        return response


def key_of(user: User) -> str:
    """The key under which the bounds count this person."""
    return f"person:{user.pk}"


def caller_of(scope: Scope) -> str:
    """The person who sends this request, or its client address."""
    credential = _credential(scope)
    if credential is not None and credential in _known:
        _known.move_to_end(credential)
        return _known[credential]
    return f"address:{(scope.get('client') or [''])[0]}"


def learn(scope: Scope) -> None:
    """Remember the person of this request's credential, if Django authenticated it."""
    person, credential = scope.get(PERSON), _credential(scope)
    if person is None or credential is None:
        return
    _known[credential] = person
    _known.move_to_end(credential)
    if len(_known) > MAX_CREDENTIALS:
        _known.popitem(last=False)


def headers_of(scope: Scope) -> Mapping[str, str]:
    """The headers of a request, by name in lower case."""
    return {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}


def _credential(scope: Scope) -> bytes | None:
    """The hash of the bearer token, or of the session's key; None without both."""
    headers = headers_of(scope)
    secret = headers.get("authorization") or parse_cookie(headers.get("cookie", "")).get(settings.SESSION_COOKIE_NAME)
    return hashlib.blake2b(secret.encode(), digest_size=16).digest() if secret else None
