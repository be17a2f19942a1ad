"""What a socket shows: its view and all that the rendering depends on. Those of one sight are shown the same.

Everything about a sight is read from one snapshot of the database: whether its person may look on, what they may see,
and what they are shown. So nothing is ever rendered by other rights than those of the sight that it is sent to.
"""

from collections.abc import Hashable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from django.db import connection, transaction
from django.utils import translation

from hekla.apps.accounts import selectors as accounts
from hekla.apps.accounts.models import User
from hekla.apps.event_log import selectors as event_log
from hekla.apps.impersonation import selectors as acting
from hekla.apps.login_sessions import selectors as visits
from hekla.apps.tenancy import selectors as tenancy
from hekla.apps.tenancy.selectors import Standing
from hekla.domain.errors import NotFound
from hekla.lib import clock
from hekla.live import registry
from hekla.live.guard import Visitor
from hekla.live.registry import LiveView

_CONTROL_PARAMETERS = ("view", "since")


@dataclass(frozen=True, slots=True)
class LiveQuery:
    """What a page asks to follow."""

    view: str
    params: frozenset[tuple[str, str]]
    language: str

    @staticmethod
    def by(query: Mapping[str, str], language: str) -> "LiveQuery":
        """As the query of its address says it."""
        rest = frozenset((name, value) for name, value in query.items() if name not in _CONTROL_PARAMETERS)
        return LiveQuery(query.get("view", ""), rest, language)


@dataclass(frozen=True, slots=True)
class SubscriptionKey:
    """What is asked for, which part of it, of whom, and what it listens to."""

    asked: LiveQuery
    part: int
    audience: Hashable
    topics: frozenset[str]

    @property
    def is_aside(self) -> bool:
        """Whether it stands beside what the page itself shows."""
        return self.asked.view == registry.SIDE_VIEW


class ScopeChanged(Exception):
    """Its person sees something else now."""


def resolve(visitor: Visitor, asked: LiveQuery) -> tuple[Standing, list[SubscriptionKey]]:
    """All parts that this visitor sees now, the one beside them last, and by which standing. Raises NotFound."""
    with _snapshot():
        standing, user = _roles_and_user(visitor)
        beside = _key_for(user, LiveQuery(registry.SIDE_VIEW, frozenset(), asked.language), 0)
        return standing, [*(_key_for(user, asked, part) for part in range(len(registry.find(asked.view)))), beside]


def authorize(visitor: Visitor) -> tuple[Standing, User]:
    """The visitor as they are now. Raises NotFound as soon as they may not look on any more."""
    with _snapshot():
        return _roles_and_user(visitor)


def render(sight: SubscriptionKey, visitor: Visitor) -> tuple[int, str]:
    """The live parts as they are at a number of the log, by the rights of one of those who see it.

    Raises Moved where that visitor sees something else by now, and NotFound where they see nothing.
    """
    with _snapshot():
        number, user = event_log.last_number(), _effective_user(visitor)
        if _key_for(user, sight.asked, sight.part) != sight:
            raise ScopeChanged
        with translation.override(sight.asked.language):
            return number, view_of(sight).render(user, dict(sight.asked.params))


def _roles_and_user(visitor: Visitor) -> tuple[Standing, User]:
    if visitor.session is not None:
        carried = visits.carried(visitor.session, accounts.active(visitor.person), now=clock.now())
        if carried is None or carried.get(acting.KEY) != visitor.acting:
            raise NotFound("This session is over.")
    user = _effective_user(visitor)
    return tenancy.standings([user.pk])[user.pk], user


def _effective_user(visitor: Visitor) -> User:
    """As whom the visitor looks on: themselves, or the person they act for. Raises NotFound."""
    return acting.present(accounts.active(visitor.person), visitor.acting, now=clock.now())


def view_of(sight: SubscriptionKey) -> LiveView:
    """What renders it."""
    return registry.find(sight.asked.view)[sight.part]


def _key_for(user: User, asked: LiveQuery, part: int) -> SubscriptionKey:
    view, params = registry.find(asked.view)[part], dict(asked.params)
    return SubscriptionKey(asked, part, view.audience(user, params), view.topics(user, params))


@contextmanager
def _snapshot() -> Iterator[None]:
    """Everything that is read within is of one instant; nothing can be written."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        yield
