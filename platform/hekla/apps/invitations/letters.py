"""Mails invitation links outside the request that created them, so that a slow mail server delays nobody.

A worker claims a letter by postponing its due time: if the worker dies while sending, the letter is sent again a little
later. The letter, with its link, is deleted once the server accepts it or the invitation is no longer open.
"""

import time
from collections.abc import Iterable
from datetime import datetime

from django.conf import settings
from django.utils import translation

from hekla.apps.event_log.services import unit_of_work
from hekla.apps.invitations import encryption, mail, selectors, wake
from hekla.apps.invitations.models import Invitation, InvitationMail
from hekla.lib.backoff import backoff_delay
from hekla.lib.encryption import DecryptionError

MOST_ATTEMPTS = 60
_BUSY_SECONDS = 6.0


def post(links: Iterable[tuple[Invitation, str]], *, now: datetime) -> set[int]:
    """Queue a letter for each link whose invitation has an address, in the current language.

    Returns the ids of the invitations with a letter; none if no mail server is configured.
    """
    if not settings.MAIL_IS_SET_UP:
        return set()
    language = translation.get_language() or settings.LANGUAGE_CODE
    letters = [
        InvitationMail(invitation=invitation, link=encryption.COLUMN.encrypt(link), language=language, due_at=now)
        for invitation, link in links
        if invitation.email
    ]
    with unit_of_work():
        InvitationMail.objects.bulk_create(letters)
        if letters:
            wake.send_soon()
    return {letter.invitation_id for letter in letters}


def send_due(*, now: datetime) -> int:
    """Send the letters that are due, for a few seconds at most. Returns the number sent."""
    sent, deadline = 0, time.monotonic() + _BUSY_SECONDS
    while time.monotonic() < deadline and (letter := _claim(now)):
        sent += _send(letter, now)
    return sent


def _claim(now: datetime) -> InvitationMail | None:
    with unit_of_work():
        due = InvitationMail.objects.filter(due_at__lte=now).select_for_update(skip_locked=True, of=("self",))
        letter = due.select_related("invitation__tenant", "invitation__invited_by").order_by("due_at", "pk").first()
        if letter is not None:
            letter.attempts += 1
            letter.due_at = now + backoff_delay(letter.attempts)
            letter.save(update_fields=["attempts", "due_at"])
    return letter


def _send(letter: InvitationMail, now: datetime) -> int:
    """Send one letter, outside any transaction, because the mail server may be slow. Returns 1 if sent, else 0."""
    is_open = selectors.is_open(letter.invitation, now=now)
    try:
        if is_open:
            with translation.override(letter.language):
                mail.deliver(letter.invitation, encryption.COLUMN.decrypt(letter.link))
    except (mail.InvitationNotSent, DecryptionError) as error:
        _failed(letter, str(error))
        return 0
    with unit_of_work():
        InvitationMail.objects.filter(pk=letter.pk).delete()
    return int(is_open)


def _failed(letter: InvitationMail, why: str) -> None:
    abandoned = {"due_at": None, "link": b""} if letter.attempts >= MOST_ATTEMPTS else {}
    with unit_of_work():
        InvitationMail.objects.filter(pk=letter.pk).update(error=why[:300], **abandoned)
