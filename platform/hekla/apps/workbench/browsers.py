"""Which session a person has open where all sessions share one host: at most one, in one browser.

Pages of one host can read each other. So a pass counts only beside the cookie of its browser, and only until the same
person, or another one in the same browser, enters another session. The cache knows the last entry of each person; what
it has forgotten must be opened again.
"""

import secrets
from collections.abc import Collection
from dataclasses import dataclass, replace

from django.conf import settings
from django.core.cache import cache
from redis.exceptions import RedisError

from hekla.apps.workbench import selectors
from hekla.apps.workbench.entry import EntryPass
from hekla.apps.workbench.models import ToolSession

_HOUR_SECONDS = 3600


@dataclass(frozen=True, slots=True)
class Entrance:
    """A person's entry into a session. `left`: the slugs of the sessions that it ended, for this person and browser.

    `is_new`: this browser may still hold what another session stored.
    """

    entry: EntryPass
    left: tuple[str, ...] = ()
    is_new: bool = False


def enter(entry: EntryPass, browser: str) -> Entrance:
    """Note that this person enters this session now, which ends the others. Raises RedisError.

    `browser`: the cookie of the browser; empty if it has none. A second page of the same session ends nothing.
    """
    last, lasting = _last(entry.person), settings.SESSION_HOURS * _HOUR_SECONDS
    if last is not None and last.slug == entry.slug and last.browser_cookie == browser:
        cache.touch(_key(entry.person), lasting)  # as long as this login session, which may be a new one
        return Entrance(replace(entry, browser=last.browser))
    others = [_last(_person_of(browser))] if browser else []
    left = [one for one in others if one is not None and one.browser_cookie == browser and one.person != entry.person]
    cache.delete_many([_key(one.person) for one in left])
    entered = replace(entry, browser=secrets.token_urlsafe(24))
    cache.set(_key(entry.person), f"{entered.slug} {entered.browser}", timeout=lasting)
    return Entrance(entered, tuple(one.slug for one in (last, *left) if one is not None), is_new=True)


def current(entries: Collection[EntryPass]) -> set[EntryPass]:
    """Those of these passes that still count: all, if sessions have hosts of their own. Raises RedisError."""
    if not settings.WORKBENCH_HOST:
        return set(entries)
    found = cache.get_many({_key(entry.person) for entry in entries})
    return {one for one in entries if one.browser and found.get(_key(one.person)) == f"{one.slug} {one.browser}"}


def open_elsewhere(session: ToolSession, person: int) -> ToolSession | None:
    """The session that this person has open on the shared host, and that entering this one would end."""
    try:
        last = _last(person) if settings.WORKBENCH_HOST else None
    except RedisError:  # a ticket cannot be issued then either
        return None
    return selectors.open_of_slug(last.slug) if last is not None and last.slug != session.slug else None


def _last(person: int) -> EntryPass | None:
    stored = cache.get(_key(person))
    if not isinstance(stored, str):
        return None
    slug, _space, browser = stored.partition(" ")
    return EntryPass(slug, person, browser=browser)


def _person_of(browser: str) -> int:
    number = browser.partition(".")[0]
    return int(number) if number.isascii() and number.isdigit() and len(number) < 19 else 0  # noqa: PLR2004


def _key(person: int) -> str:
    return f"workbench:browser:{person}"
