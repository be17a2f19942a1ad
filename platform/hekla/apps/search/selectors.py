"""What holds a text in its name, as far as the person may see it: a few of each kind, the newest first."""

from hekla.apps.accounts.models import User
from hekla.apps.search import registry
from hekla.apps.search.registry import Hit

MIN_LENGTH, MAX_LENGTH = 2, 100
"""Letters of a text that is looked for."""


def find(user: User, text: str, language: str) -> list[Hit]:
    """At most a few things of each kind; nothing for a text that is too short. Costs about a query a kind."""
    text = text.strip()[:MAX_LENGTH].replace("\0", "")
    if len(text) < MIN_LENGTH:
        return []
    return [hit for source in registry.sources() for hit in source.find(user, text, language)]
