"""Where login sessions are stored: Django's table, read with a query that is compiled once.

Each request of a person reads its session, and building that query costs Django more than running it.
"""

from django.contrib.sessions.backends.db import SessionStore as DatabaseStore
from django.contrib.sessions.models import Session
from django.utils import timezone

from hekla.apps.compiled import CompiledQuery, Parameter

_KEY, _EXPIRY = Session._meta.get_field("session_key"), Session._meta.get_field("expire_date")
_VALID = CompiledQuery(
    lambda: Session.objects.filter(session_key=Parameter("key", _KEY), expire_date__gt=Parameter("now", _EXPIRY))
)


class SessionStore(DatabaseStore):
    """Django's store. The name is part of the key that signs the sessions, so it must stay."""

    def _get_session_from_db(self) -> Session | None:
        for session in _VALID.rows(key=self.session_key, now=timezone.now()):
            return session
        self._session_key = None
        return None
