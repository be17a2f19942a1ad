"""The signed-in person of a request."""

from django.http import HttpRequest

from hekla.apps.accounts.models import User


def person(request: HttpRequest) -> User:
    """The signed-in person. Raises TypeError without one, which the login middleware prevents."""
    user = request.user
    if not isinstance(user, User):
        raise TypeError("This page needs a signed-in person")
    return user
