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

_NOT_SHOWN = ("view", "since")


@dataclass(frozen=True, slots=True)
class Asked:
    """What a page asks to follow."""

    view: str
    params: frozenset[tuple[str, str]]
    language: str

    @staticmethod
    def by(query: Mapping[str, str], language: str) -> "Asked":
        """As the query of its address says it."""
        rest = frozenset((name, value) for name, value in query.items() if name not in _NOT_SHOWN)
        return Asked(query.get("view", ""), rest, language)


@dataclass(frozen=True, slots=True)
class Sight:
    """What is asked for, which part of it, of whom, and what it listens to."""

    asked: Asked
    part: int
    audience: Hashable
    topics: frozenset[str]

    @property
    def is_aside(self) -> bool:
        """Whether it stands beside what the page itself shows."""
        return self.asked.view == registry.ASIDE


class Moved(Exception):
    """Its person sees something else now."""


def seen(visitor: Visitor, asked: Asked) -> tuple[Standing, list[Sight]]:
    """All parts that this visitor sees now, the one beside them last, and by which standing. Raises NotFound."""
    with _snapshot():
        standing, user = _present(visitor)
        beside = _sight(user, Asked(registry.ASIDE, frozenset(), asked.language), 0)
        return standing, [*(_sight(user, asked, part) for part in range(len(registry.find(asked.view)))), beside]


def who(visitor: Visitor) -> tuple[Standing, User]:
    """The visitor as they are now. Raises NotFound as soon as they may not look on any more."""
    with _snapshot():
        return _present(visitor)


def render(sight: Sight, visitor: Visitor) -> tuple[int, str]:
    """The live parts as they are at a number of the log, by the rights of one of those who see it.

    Raises Moved where that visitor sees something else by now, and NotFound where they see nothing.
    """
    with _snapshot():
        number, user = event_log.last_number(), _seen_as(visitor)
        if _sight(user, sight.asked, sight.part) != sight:
            raise Moved
        with translation.override(sight.asked.language):
            return number, view_of(sight).render(user, dict(sight.asked.params))


def _present(visitor: Visitor) -> tuple[Standing, User]:
    if visitor.session is not None:
        carried = visits.carried(visitor.session, accounts.active(visitor.person), now=clock.now())
        if carried is None or carried.get(acting.KEY) != visitor.acting:
            raise NotFound("This session is over.")
    user = _seen_as(visitor)
    return tenancy.standings([user.pk])[user.pk], user


def _seen_as(visitor: Visitor) -> User:
    """As whom the visitor looks on: themselves, or the person they act for. Raises NotFound."""
    return acting.present(accounts.active(visitor.person), visitor.acting, now=clock.now())


def view_of(sight: Sight) -> LiveView:
    """What renders it."""
    return registry.find(sight.asked.view)[sight.part]


def _sight(user: User, asked: Asked, part: int) -> Sight:
    view, params = registry.find(asked.view)[part], dict(asked.params)
    return Sight(asked, part, view.audience(user, params), view.topics(user, params))


@contextmanager
def _snapshot() -> Iterator[None]:
    """Everything that is read within is of one instant; nothing can be written."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        yield
