"""Live views: the parts of pages that are sent again when something changes.

A page names its view (`job`) and its parameters. A view has topics that change it and a function that renders its live
parts for one person. Each feature of the pages registers its own.

A rendering for one person is sent to another only if the view gives both the same audience.
"""

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass

from django.utils.translation import gettext as _

from hekla.apps.accounts.models import User
from hekla.domain.errors import NotFound

Params = Mapping[str, str]


def private_audience(user: User, _params: Params) -> Hashable:
    """An audience of one: nobody else gets this rendering."""
    return user.pk


@dataclass(frozen=True, slots=True)
class LiveView:
    """`topics`: what changes it, for this person. `render`: its live parts now.

    The audience, which is called first, or the topics raise NotFound for people who may not see it.

    `audience`: everything about the person that the rendering depends on; people with equal audiences get the same
    rendering. It may depend only on the person's roles, on what never changes, and on `audience_topics`: after these,
    all audiences are computed again before anything is sent.
    """

    topics: Callable[[User, Params], frozenset[str]]
    render: Callable[[User, Params], str]
    audience: Callable[[User, Params], Hashable] = private_audience
    audience_topics: frozenset[str] = frozenset()


SIDE_VIEW = "bell"
"""The view that is on every page beside its own. Its messages have no event number: the newest is right."""
_views: dict[str, tuple[LiveView, ...]] = {}


def register(name: str, *views: LiveView) -> None:
    """Register a page's views under this name: several if its parts have different audiences or topics."""
    _views[name] = views


def find(name: str) -> tuple[LiveView, ...]:
    """The views of the page of that name. Raises NotFound."""
    if name not in _views:
        raise NotFound(_("Unknown live view."))
    return _views[name]


def names() -> tuple[str, ...]:
    """The names of all views."""
    return tuple(sorted(_views))
