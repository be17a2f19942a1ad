"""How often a process that goes on for long looks for garbage: seldom, and never among what it loaded to begin with.

Nearly all that a request or a message leaves behind is freed at once, by counting references. What is left are few
cycles, while a full round looks at all of Django, the pages, the engine and each open socket: a tenth of a second and
more in which everybody waits. With Python's own settings, one message to thousands of sockets is enough for such a
round, since as many tasks begin before the first of them is done; and a controller that comes to know a hundred
thousand pods would look through all of them again and again while it reads them.
"""

import gc

from django.urls import get_resolver

_NEW_OBJECTS = 100_000
"""So many more than were freed make a round among the young; some ten megabytes."""


def settle() -> None:
    """Leave whatever is there by now out of all rounds, and make rounds seldom."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(_NEW_OBJECTS, 10, 10)


def settle_with_pages() -> None:
    """The same, with the pages loaded first."""
    get_resolver().url_patterns  # noqa: B018  (they are loaded by being asked for)
    settle()
