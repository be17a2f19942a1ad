"""Slows down guesses of the password of one account name, from any number of addresses.

After a few wrong passwords for a name, one attempt may pass, then none for a delay that doubles each time. Addresses
from which this person signed in lately are exempt, so that a stranger's guesses lock nobody out: there the limit of
`axes` by name and address holds. A name that nobody has gets the same answers.
"""

import unicodedata
from datetime import datetime, timedelta
from hashlib import sha256
from ipaddress import ip_network

from django.core.cache import cache
from redis.exceptions import RedisError

from hekla.apps.accounts import selectors as accounts
from hekla.apps.event_log import selectors as event_log

FREE_FAILURES = 10
FIRST_DELAY, LONGEST_DELAY = timedelta(seconds=2), timedelta(minutes=15)
REMEMBERED = timedelta(hours=1)
"""The time without an attempt after which wrong passwords are forgotten."""
KNOWN_FOR = timedelta(days=30)
_PREFIX = "slowdown"


def attempt(username: str, address: str, *, now: datetime) -> timedelta:
    """Count an attempt as wrong, before its password is checked. Returns the time to wait; none if it may pass.

    Counting first keeps parallel attempts from passing together.
    """
    if _is_known(username, address, now):
        return timedelta()
    try:
        return _pass(_key(username), now)
    except (RedisError, ValueError):  # the count or the cache is lost: lock nobody out
        return timedelta()


def succeeded(username: str) -> None:
    """The password of the last attempt was right, so it does not count."""
    try:
        cache.decr(_key(username))
    except (RedisError, ValueError):  # an exempt address, or the count is lost
        return


def _pass(name: str, now: datetime) -> timedelta:
    if (wait := _wait(name, now)) > timedelta():
        return wait
    cache.add(name, 0, timeout=int(REMEMBERED.total_seconds()))
    failures = cache.incr(name)
    cache.touch(name, int(REMEMBERED.total_seconds()))
    delay = _delay(failures - FREE_FAILURES)
    if not delay or cache.add(f"{name}:until", (now + delay).timestamp(), timeout=int(delay.total_seconds())):
        return timedelta()
    return max(_wait(name, now), FIRST_DELAY)


def _delay(beyond: int) -> timedelta:
    """The delay after the failure with this number beyond the free ones: 2 s, 4 s, 8 s, … 15 min."""
    return min(FIRST_DELAY * 2 ** min(beyond - 1, 20), LONGEST_DELAY) if beyond > 0 else timedelta()


def _wait(name: str, now: datetime) -> timedelta:
    until = cache.get(f"{name}:until")
    return timedelta(seconds=max(until - now.timestamp(), 0)) if until else timedelta()


def _key(username: str) -> str:
    """The key of the count. The form and REST spell a name alike."""
    return f"{_PREFIX}:{sha256(unicodedata.normalize('NFKC', username).encode()).hexdigest()}"


def _is_known(username: str, address: str, now: datetime) -> bool:
    """Whether the person signed in from this address, or its IPv6 network, in the last 30 days."""
    user = accounts.by_username(username) if "\0" not in username else None
    known = event_log.sign_in_addresses(f"user:{user.pk if user else 0}", since=now - KNOWN_FOR)
    return bool(address) and _network(address) in {_network(one) for one in known if one}


def _network(address: str) -> str:
    """The address; the /64 of an IPv6 address, because computers change the rest each day."""
    try:
        return str(ip_network(f"{address}/64", strict=False)) if ":" in address else address
    except ValueError:
        return address
