"""Reads the person of a login session with a query that is compiled once: each request of a person does."""

from django.contrib.auth.backends import ModelBackend

from hekla.apps.accounts.models import User
from hekla.apps.compiled import CompiledQuery, Parameter

_BY_ID = CompiledQuery(lambda: User.objects.filter(pk=Parameter("pk", User._meta.pk)))


def _get_user(backend: ModelBackend, user_id: int) -> User | None:
    """The person, unless they may not sign in."""
    return next((user for user in _BY_ID.rows(pk=user_id) if backend.user_can_authenticate(user)), None)


def register() -> None:
    """Let Django's backend read people so. A backend of another name would end all sessions."""
    ModelBackend.get_user = _get_user  # type: ignore[method-assign, assignment]
