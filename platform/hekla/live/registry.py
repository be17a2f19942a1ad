"""Live views: the parts of pages that are sent again after changes.

A page subscribes to a view by name (`job`) with parameters. A view has topics that change it, and a function that
renders its live parts for one person. Each feature of the pages registers its own views.

People get the same rendering only if the view has the same audience for them.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass

from django.utils.translation import gettext as _

from hekla.apps.accounts.models import User
from hekla.domain.errors import NotFound

Params = Mapping[str, str]


def private_audience(user: User, _params: Params) -> Hashable:
    """An audience of one person: nobody else gets this rendering."""
    return user.pk


@dataclass(frozen=True, slots=True)
class LiveView:
    """`topics`: the topics that change the view for this person. `render`: the HTML of its live parts now.

    `audience` is called first. It or `topics` raises NotFound for people without permission.

    `audience`: everything about the person that the rendering depends on; people with equal audiences get the same
    rendering. It may depend only on the person's roles, on constants, and on `audience_topics`: after an event of
    these, all audiences are computed again before anything is sent.
    """

    topics: Callable[[User, Params], frozenset[str]]
    render: Callable[[User, Params], str]
    audience: Callable[[User, Params], Hashable] = private_audience
    audience_topics: frozenset[str] = frozenset()


SIDE_VIEW = "bell"
"""The view on every page in addition to the page's own. Its messages have no event number: the newest counts."""
_sources: list[Callable[[], Mapping[str, Sequence[LiveView]]]] = []


def add_source(source: Callable[[], Mapping[str, Sequence[LiveView]]]) -> None:
    """Serve these views of pages, by name: several for a page whose parts have different audiences or topics.

    The source is called at every lookup, so it can import the views at the first one.
    """
    _sources.append(source)


def find(name: str) -> Sequence[LiveView]:
    """The views of the page with this name. Raises NotFound."""
    for source in _sources:
        if name in source():
            return source()[name]
    raise NotFound(_("Unknown live view."))


def names() -> tuple[str, ...]:
    """The names of all views."""
    return tuple(sorted(name for source in _sources for name in source()))
