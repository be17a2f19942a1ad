"""The navigation rail: the links from every page to the pages of the features."""

from dataclasses import dataclass
from enum import StrEnum

from django.utils.functional import Promise

from hekla.apps.accounts import selectors as accounts
from hekla.apps.accounts.models import User
from hekla.apps.accounts.roles import Permission
from hekla.pages import registry


class Section(StrEnum):
    """A section of the rail. The first is also the bottom bar on phones."""

    FIRST = "first"
    WORK = "work"
    ADMINISTRATION = "administration"
    LAST = "last"


@dataclass(frozen=True, slots=True)
class NavigationItem:
    """A link of the rail. `order`: its place in the section, from the top; `view`: a view without arguments.

    The link is marked as current on `view`, on pages of the namespaces in `within`, and on the views in `also`.
    `permission`: who sees it. `is_searchable`: its list takes `?q=`.
    """

    section: Section
    order: int
    view: str
    icon: str
    label: str | Promise
    within: str = ""
    also: tuple[str, ...] = ()
    permission: Permission | None = None
    is_searchable: bool = False


def items(section: Section, user: User) -> list[NavigationItem]:
    """The links of this section that the person may see, in order."""
    found = [item for module in registry.modules("navigation") for item in module.ITEMS if item.section is section]
    return sorted(
        (item for item in found if item.permission is None or accounts.may(user, item.permission)),
        key=lambda item: (item.order, item.view),
    )
