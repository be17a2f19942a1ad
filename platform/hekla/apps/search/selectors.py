"""Search by name in what the person may see: a few hits of each kind, newest first."""

from hekla.apps.accounts.models import User
from hekla.apps.search import registry
from hekla.apps.search.registry import Hit
from hekla.apps.tenancy import selectors as tenancy
from hekla.apps.tenancy.selectors import Rights

MIN_LENGTH, MAX_LENGTH = 2, 100
"""The minimum and maximum length of a search text, in characters."""


def find(user: User, text: str, language: str, kind: str = "", rights: Rights | None = None) -> list[Hit]:
    """A few hits of each kind, or of one; none for a text that is too short. Costs about one query per kind.

    `rights`: those of the person, if already read.
    """
    text = text.strip()[:MAX_LENGTH].replace("\0", "")
    if len(text) < MIN_LENGTH:
        return []
    sources = [registry.get(kind)] if kind else registry.sources()
    with tenancy.rights_read_once({user.pk: rights} if rights else {}):
        return [hit for source in sources for hit in source.find(user, text, language)]
