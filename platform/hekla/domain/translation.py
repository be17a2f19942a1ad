"""Translation of messages for users, without a dependency on Django.

The domain writes English. The process that serves readers installs a lookup once, at its start (`set_translator`). A
message is formatted where it arises, after the lookup: user input is always a value, never part of the message id.
Messages that are stored for later readers hold facts instead (`lifecycle.messages`).
"""

from collections.abc import Callable

Translator = Callable[[str], str]

_look_up: Translator = str


def set_translator(look_up: Translator) -> None:
    """Install the lookup of this process."""
    global _look_up  # noqa: PLW0603  (one per process; it finds the reader's language itself)
    _look_up = look_up


def translate(sentence: str, /, **values: object) -> str:
    """The message in the reader's language, with the values filled in."""
    found = _look_up(sentence)
    return found.format(**values) if values else found


def gettext_noop(text: str) -> str:
    """Mark a message for extraction; it is translated where it is used."""
    return text
