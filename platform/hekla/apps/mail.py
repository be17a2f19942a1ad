"""Mails to people. Names in them cannot look different from what they are."""

from collections.abc import Mapping

from django.core.mail import EmailMessage

from hekla.lib.text import show_bidi_controls

_MAX_SUBJECT = 200


def send(to: str, subject: str, text: str, *, headers: Mapping[str, str] | None = None) -> None:
    """Send a mail, with its subject on one line. Raises OSError, SMTPException."""
    line = show_bidi_controls(" ".join(subject.split()))[:_MAX_SUBJECT]
    EmailMessage(line, show_bidi_controls(text), None, [to], headers=dict(headers or {})).send()
