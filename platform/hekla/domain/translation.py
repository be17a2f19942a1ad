"""Sentences for people, in the language of whoever reads them.

The domain writes English and knows no other language. Whoever serves readers of several says once, at its start, how a
sentence is looked up in the language of the present one. A sentence is finished where it arises: there its values are
at hand, and what people typed is a value, never part of what is looked up. What is kept for later readers holds facts
instead (`lifecycle.messages`).
"""

from collections.abc import Callable

Translator = Callable[[str], str]

_look_up: Translator = str


def set_translator(look_up: Translator) -> None:
    """Look up every sentence so from now on."""
    global _look_up  # noqa: PLW0603  (of this process: the lookup itself knows who reads now)
    _look_up = look_up


def translate(sentence: str, /, **values: object) -> str:
    """The sentence for the present reader, with the values in their places; without values it stays as it stands."""
    found = _look_up(sentence)
    return found.format(**values) if values else found


def gettext_noop(text: str) -> str:
    """A sentence that is written down here and said elsewhere."""
    return text
