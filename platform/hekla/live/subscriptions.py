"""Subscription keys: a view and everything that its rendering depends on. Equal keys get equal renderings.

Permission, audience and rendering are read in one database snapshot. So nothing is rendered with other permissions
than those of the subscribers that receive it.
"""

from collections.abc import Hashable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from django.conf import settings
from django.db import connection, transaction
from django.utils import translation

from hekla.apps.accounts import selectors as accounts
from hekla.apps.accounts.models import User
from hekla.apps.event_log import selectors as event_log
from hekla.apps.impersonation import selectors as impersonation
from hekla.apps.login_sessions import selectors as login_sessions
from hekla.apps.signin import rule
from hekla.apps.tenancy import selectors as tenancy
from hekla.apps.tenancy.selectors import RoleSnapshot
from hekla.domain.errors import NotFound
from hekla.lib import clock
from hekla.lib.text import show_bidi_in_html
from hekla.live import registry
from hekla.live.guard import Visitor
from hekla.live.registry import LiveView

_CONTROL_PARAMETERS = ("view", "since", "language")


@dataclass(frozen=True, slots=True)
class LiveQuery:
    """The view, parameters and language of a page."""

    view: str
    params: frozenset[tuple[str, str]]
    language: str

    @staticmethod
    def parse(parameters: Mapping[str, str]) -> "LiveQuery":
        """The query in the parameters of the socket's URL. The default language replaces one that Hekla lacks."""
        named = parameters.get("language", "")
        language = named if named in dict(settings.LANGUAGES) else settings.LANGUAGE_CODE
        rest = frozenset((name, value) for name, value in parameters.items() if name not in _CONTROL_PARAMETERS)
        return LiveQuery(parameters.get("view", ""), rest, language)


@dataclass(frozen=True, slots=True)
class SubscriptionKey:
    """The query, the part of the page, its audience, and the topics that change it."""

    query: LiveQuery
    part: int
    audience: Hashable
    topics: frozenset[str]

    @property
    def is_side_view(self) -> bool:
        """Whether it is the view that is on every page."""
        return self.query.view == registry.SIDE_VIEW


class ScopeChanged(Exception):
    """The permissions of the person have changed since the subscription."""


def resolve(visitor: Visitor, query: LiveQuery) -> tuple[RoleSnapshot, list[SubscriptionKey]]:
    """The visitor's roles, and a key for each part of the page, the side view last. Raises NotFound."""
    with _snapshot():
        roles, user = _roles_and_user(visitor)
        side = _key_for(user, LiveQuery(registry.SIDE_VIEW, frozenset(), query.language), 0)
        return roles, [*(_key_for(user, query, part) for part in range(len(registry.find(query.view)))), side]


def authorize(visitor: Visitor) -> tuple[RoleSnapshot, User]:
    """The visitor's present roles and effective user. Raises NotFound if their session has ended, or if they lack a
    required second factor.
    """
    with _snapshot():
        return _roles_and_user(visitor)


def render(key: SubscriptionKey, visitor: Visitor) -> tuple[int, str]:
    """The HTML for one subscriber, and the number of the last event that it includes.

    Raises ScopeChanged if the visitor's key has changed, and NotFound without permission.
    """
    with _snapshot():
        number, user = event_log.last_number(), _effective_user(visitor)
        if _key_for(user, key.query, key.part) != key:
            raise ScopeChanged
        with translation.override(key.query.language):
            return number, show_bidi_in_html(view_of(key).render(user, dict(key.query.params)))


def _roles_and_user(visitor: Visitor) -> tuple[RoleSnapshot, User]:
    if visitor.session is not None:
        session_data = login_sessions.session_data(visitor.session, accounts.active(visitor.person), now=clock.now())
        if session_data is None or session_data.get(impersonation.KEY) != visitor.impersonation:
            raise NotFound("This session is over.")
    if visitor.token is not None and not accounts.tokens_in_force({visitor.token}, now=clock.now()):
        raise NotFound("The token is not in force.")
    if rule.without_required_factor([visitor.person]):
        raise NotFound("The second factor is missing.")
    user = _effective_user(visitor)
    return tenancy.role_snapshots([user.pk])[user.pk], user


def _effective_user(visitor: Visitor) -> User:
    """The person whom the visitor impersonates, otherwise the visitor. Raises NotFound."""
    return impersonation.present(accounts.active(visitor.person), visitor.impersonation, now=clock.now())


def view_of(key: SubscriptionKey) -> LiveView:
    """The live view of this key."""
    return registry.find(key.query.view)[key.part]


def _key_for(user: User, query: LiveQuery, part: int) -> SubscriptionKey:
    view, params = registry.find(query.view)[part], dict(query.params)
    return SubscriptionKey(query, part, view.audience(user, params), view.topics(user, params))


@contextmanager
def _snapshot() -> Iterator[None]:
    """A read-only transaction with one database snapshot."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        yield
