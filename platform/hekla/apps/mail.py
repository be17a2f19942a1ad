"""Mails to people. Names in them cannot look different from what they are."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from django.core.mail import EmailMultiAlternatives

from hekla.lib.text import show_bidi_controls

_MAX_SUBJECT = 200


@dataclass(frozen=True, slots=True)
class MailFile:
    """A file in a mail. `kind`: its media type."""

    name: str
    content: bytes
    kind: str


def send(
    to: str,
    subject: str,
    text: str,
    *,
    html: str = "",
    files: Sequence[MailFile] = (),
    headers: Mapping[str, str] | None = None,
) -> None:
    """Send a mail, with its subject on one line. `html`: the same for readers that show HTML.

    Raises OSError, SMTPException.
    """
    line = show_bidi_controls(" ".join(subject.split()))[:_MAX_SUBJECT]
    message = EmailMultiAlternatives(line, show_bidi_controls(text), None, [to], headers=dict(headers or {}))
    if html:
        message.attach_alternative(html, "text/html")
    for file in files:
        message.attach(file.name, file.content, file.kind)
    message.send()
