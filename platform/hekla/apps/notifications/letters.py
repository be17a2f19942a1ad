"""Mails with more than sentences: other apps register who writes those of the moments that they notify of.

Such a mail is written when it is sent, because what its reader may see can change until then. It is never grouped.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from django.utils.module_loading import import_string

from hekla.apps.mail import MailFile
from hekla.apps.notifications.choices import Moment
from hekla.apps.notifications.models import Notification
from hekla.domain.errors import Refused


class LetterWithdrawn(Refused):
    """The mail must not be sent any more; no retry."""

    code = "letter_withdrawn"


@dataclass(frozen=True, slots=True)
class Letter:
    """A mail. `html`: the same as its text, for readers that show HTML."""

    subject: str
    text: str
    html: str = ""
    files: Sequence[MailFile] = ()


class LetterWriter(Protocol):
    """Who writes the mails of a moment."""

    def compose(self, notification: Notification) -> Letter:
        """The mail of this notification, in the current language. Raises LetterWithdrawn."""

    def settle(self, notification: Notification, *, error: str, is_over: bool, now: datetime) -> None:
        """Note that the mail was sent (no `error`), or was not. Called in a unit of work. `is_over`: no retry."""


WRITERS: dict[Moment, str] = {}
"""The dotted path of a class by moment. Filled when the apps are ready; the class is imported for the first mail."""


def writer_of(notification: Notification) -> LetterWriter | None:
    """Who writes the mail of this notification; None: it is its sentence."""
    path = WRITERS.get(Moment(notification.moment))
    return import_string(path)() if path else None
