"""Mails and webhooks: their contents, and sending them."""

import asyncio
import hashlib
import hmac
import json
import logging
import smtplib
import ssl
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import cache
from urllib.parse import urlsplit

import httpx2
from django.conf import settings
from django.urls import reverse
from django.utils import translation
from django.utils.translation import gettext as _

from hekla.apps import mail as mails
from hekla.apps.notifications import addresses, encryption, labels
from hekla.apps.notifications.letters import Letter, LetterWithdrawn, writer_of
from hekla.apps.notifications.models import Delivery, Notification, Preference
from hekla.lib.text import escape_bidi_in_json

log = logging.getLogger(__name__)
_SECONDS, _MOST_SECONDS = 4.0, 10.0
"""For each step of a webhook, and for all of them: a receiver that answers slowly must not keep a worker."""


class NotificationNotSent(Exception):
    """The receiver did not accept it; a retry may succeed."""


def mail(reach: Preference, notices: Sequence[Notification]) -> None:
    """Send one mail with all these notifications. Raises NotificationNotSent, LetterWithdrawn."""
    if not settings.MAIL_IS_SET_UP:
        raise NotificationNotSent(_("This console has no mail server."))
    if not reach.mail:
        raise NotificationNotSent(_("No email address is set."))
    with translation.override(reach.language or settings.LANGUAGE_CODE):
        letter = _letter(notices)
    host = urlsplit(settings.PUBLIC_URL).hostname or "localhost"
    headers = {"Message-ID": f"<hekla-{notices[0].pk}-{len(notices)}@{host}>", "Auto-Submitted": "auto-generated"}
    subject = f"[Hekla] {letter.subject}"
    try:
        mails.send(reach.mail, subject, letter.text, html=letter.html, files=letter.files, headers=headers)
    except (OSError, smtplib.SMTPException) as error:
        why = str(error).replace(reach.mail, "…")[:200]  # others may read it, for example who sends a report
        raise NotificationNotSent(_("The mail server rejected the message: %s") % why) from error


def _letter(notices: Sequence[Notification]) -> Letter:
    """What the mail says. Raises LetterWithdrawn, NotificationNotSent."""
    writer = writer_of(notices[0])
    if writer is None:
        return Letter(*_texts(notices))
    try:
        return writer.compose(notices[0])
    except LetterWithdrawn:
        raise
    except Exception as error:  # a mail that cannot be written must not hold up the others, nor be tried for ever
        log.exception("a mail about notification %s cannot be written", notices[0].pk)
        raise NotificationNotSent(_("The mail cannot be written.")) from error


def _texts(notices: Sequence[Notification]) -> tuple[str, str]:
    """The subject and the text of a mail."""
    sentences = [labels.sentence(one) for one in notices]
    lines = [f"{sentence}\n{address(one)}" for sentence, one in zip(sentences, notices, strict=True)]
    choose = _url(reverse("notifications:settings"))
    lines.append(_("You get this email because of your notification settings. Change them at %s") % choose)
    subject = (
        sentences[0]
        if len(notices) == 1
        else _("%(first)s And %(n)d more") % {"first": sentences[0], "n": len(notices) - 1}
    )
    return subject, "\n\n".join(lines)


def address(notification: Notification) -> str:
    """The URL of the page of the batch or job, or of the person's notifications."""
    return _url(notification.page)


def _url(path: str) -> str:
    return settings.PUBLIC_URL.rstrip("/") + path


def webhook(reach: Preference, delivery: Delivery, *, now: datetime) -> None:
    """Post a notification, signed. Raises NotificationNotSent, Refused (address not allowed), DecryptionError."""
    if not reach.webhook_url:
        raise NotificationNotSent(_("The webhook was removed."))
    secret = encryption.COLUMN.decrypt(reach.webhook_secret)
    post_signed(reach.webhook_url, _body(reach, delivery), secret, delivery=str(delivery.pk), now=now)


def post_signed(url: str, body: bytes, secret: str, *, delivery: str, now: datetime) -> None:
    """Post JSON to a checked address, signed, with an id that is equal in all attempts. The response is not read.

    Raises NotificationNotSent, Refused (address not allowed).
    """
    target = addresses.resolve(url)
    headers = {
        "Host": target.host,
        "Content-Type": "application/json",
        "User-Agent": "Hekla",
        "Hekla-Delivery": delivery,
        "Hekla-Signature": signature(secret, body, now),
    }
    try:
        status = asyncio.run(_status_of(target, body, headers))
    except (httpx2.HTTPError, httpx2.InvalidURL, TimeoutError) as error:
        raise NotificationNotSent(_("Cannot connect: %s") % (str(error) or type(error).__name__)[:200]) from error
    if not httpx2.codes.is_success(status):
        raise NotificationNotSent(_("The webhook answered with status %d.") % status)


async def _status_of(target: addresses.Target, body: bytes, headers: Mapping[str, str]) -> int:
    """Post, and return the status. Raises HTTPError, InvalidURL; TimeoutError also if the answer comes byte by byte."""
    async with (
        asyncio.timeout(_MOST_SECONDS),
        httpx2.AsyncClient(timeout=_SECONDS, follow_redirects=False, trust_env=False, verify=_certificates()) as client,
        client.stream(
            "POST", target.url, content=body, headers=headers, extensions={"sni_hostname": target.name}
        ) as answer,
    ):
        return answer.status_code


@cache
def _certificates() -> ssl.SSLContext:
    """Those that this machine trusts. To load them takes most of the time of a webhook."""
    return httpx2.create_ssl_context(trust_env=False)


def signature(secret: str, body: bytes, now: datetime) -> str:
    """`t=SECONDS,v1=DIGEST`: the digest is the HMAC-SHA256 of the seconds, a point and the body."""
    seconds = str(int(now.timestamp()))
    digest = hmac.new(secret.encode(), f"{seconds}.".encode() + body, hashlib.sha256).hexdigest()
    return f"t={seconds},v1={digest}"


def _body(reach: Preference, delivery: Delivery) -> bytes:
    notification = delivery.notification
    job, batch = notification.job_uid, notification.facts.get("batch")
    with translation.override(reach.language or settings.LANGUAGE_CODE):
        sentence = labels.sentence(notification)
    document = {
        "delivery": delivery.pk,
        "notification": notification.pk,
        "moment": notification.moment,
        "at": notification.at.isoformat(),
        "job": {"uid": str(job), "name": notification.job_name, "url": _url(reverse("jobs:detail", args=[job]))}
        if job
        else None,
        "batch": {"uid": batch, "name": notification.facts["batch_name"], "url": address(notification)}
        if batch
        else None,
        "sentence": sentence,
        "facts": notification.facts,
    }
    return escape_bidi_in_json(json.dumps(document, ensure_ascii=False)).encode()
