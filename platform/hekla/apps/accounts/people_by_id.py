"""Reads the person of a login session with a query that is compiled once: each request of a person does."""

from typing import Any

from django.contrib.auth.backends import ModelBackend
from django.http import HttpRequest

from hekla.apps.accounts.models import User
from hekla.apps.compiled import CompiledQuery, Parameter

BACKEND = f"{__name__}.PeopleById"
"""As in login sessions."""
_BY_ID = CompiledQuery(lambda: User.objects.filter(pk=Parameter("pk", User._meta.pk)))


class PeopleById(ModelBackend):
    """Django's backend, which is listed before it, checks passwords, and still reads the people of earlier sessions."""

    def authenticate(self, request: HttpRequest | None, **_credentials: Any) -> None:  # type: ignore[override]  # noqa: ANN401
        """Nobody: each password is checked once."""

    def get_user(self, user_id: int) -> User | None:
        """The person, unless they may not sign in."""
        return next((user for user in _BY_ID.rows(pk=user_id) if self.user_can_authenticate(user)), None)
