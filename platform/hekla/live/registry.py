"""The parts of pages that are sent again when something changed.

A page names its view (`job`) and its parameters; here stand, for each view, the topics that concern it and the function
that renders its live parts for one person. Each feature of the pages registers its own.

What is rendered for one person is shown to others only where the view says so: by its audience.
"""

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass

from hekla.apps.accounts.models import User
from hekla.domain.errors import NotFound

Params = Mapping[str, str]


def private_audience(user: User, _params: Params) -> Hashable:
    """An audience of one: nobody else is shown what this person sees."""
    return user.pk


@dataclass(frozen=True, slots=True)
class LiveView:
    """`topics`: what it listens to, for this person. `render`: its live parts as they are now.

    Who may not see it is told NotFound: by the audience, which is asked first, or by the topics.

    `audience`: everything about the person that the rendering depends on. All for whom it is equal are shown the
    same. It may depend on nothing but the person's standing in tenants, on what never changes, and on what `anew` tells
    of: topics after which everybody's audience is asked anew before they are shown anything.
    """

    topics: Callable[[User, Params], frozenset[str]]
    render: Callable[[User, Params], str]
    audience: Callable[[User, Params], Hashable] = private_audience
    anew: frozenset[str] = frozenset()


SIDE_VIEW = "bell"
"""The view that stands on every page, beside what the page itself shows. It has no number: the newest holds."""
_views: dict[str, tuple[LiveView, ...]] = {}


def register(name: str, *views: LiveView) -> None:
    """Make a page live under this name. Several views: parts of it that concern different people at different times."""
    _views[name] = views


def find(name: str) -> tuple[LiveView, ...]:
    """The views of the page of that name. Raises NotFound."""
    if name not in _views:
        raise NotFound("There is no such live view.")
    return _views[name]


def names() -> tuple[str, ...]:
    """Every view that there is."""
    return tuple(sorted(_views))
