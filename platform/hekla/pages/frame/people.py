"""Who is asking."""

from django.http import HttpRequest

from hekla.apps.accounts.models import User


def person(request: HttpRequest) -> User:
    """The signed-in person; the login middleware lets nobody else through to a page."""
    user = request.user
    if not isinstance(user, User):
        raise TypeError("This page needs somebody who is signed in")
    return user
