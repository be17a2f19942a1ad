"""Sends deliveries that are due. Failed ones are retried with backoff, and abandoned after MOST_ATTEMPTS.

A worker claims a delivery by postponing its due time: if the worker dies while sending, it is sent again a little
later, with the same id, by which the receiver can recognize it.
"""

import time
from collections.abc import Sequence
from datetime import datetime

from django.db.models import Q
from django.utils.translation import gettext as _

from hekla.apps.event_log.services import unit_of_work
from hekla.apps.notifications import outgoing
from hekla.apps.notifications.choices import Channel
from hekla.apps.notifications.letters import WRITERS, LetterWithdrawn, writer_of
from hekla.apps.notifications.models import Delivery, Preference
from hekla.domain.errors import Refused
from hekla.lib.backoff import backoff_delay
from hekla.lib.encryption import DecryptionError

MOST_ATTEMPTS = {Channel.MAIL: 60, Channel.WEBHOOK: 12}
_MOST_IN_A_MAIL = 50
_BUSY_SECONDS = 6.0


def send_due(*, now: datetime) -> int:
    """Send the deliveries that are due, for a few seconds at most. Returns the number sent."""
    sent, deadline = 0, time.monotonic() + _BUSY_SECONDS
    while time.monotonic() < deadline and (claimed := _claim(now)):
        sent += _send(claimed, now)
    return sent


def _claim(now: datetime) -> list[Delivery]:
    """The next delivery that is due; for people with grouped mail, together with their other waiting mails."""
    with unit_of_work():
        open_ = Delivery.objects.filter(sent_at=None, abandoned_at=None).select_for_update(
            skip_locked=True, of=("self",)
        )
        # Many reports are due at the same hour, and take a while to write: what is short does not wait for them.
        due = open_.filter(due_at__lte=now).alias(is_letter=Q(notification__moment__in=list(WRITERS)))
        first = due.select_related("notification__user").order_by("is_letter", "due_at", "pk").first()
        if first is None:
            return []
        claimed: list[Delivery] = [first]
        if _is_grouped(first):
            same = open_.filter(channel=Channel.MAIL, mail="", notification__user=first.notification.user)
            same = same.exclude(pk=first.pk).exclude(notification__moment__in=list(WRITERS))
            claimed += same.select_related("notification__user").order_by("pk")[:_MOST_IN_A_MAIL]
        for delivery in claimed:
            delivery.attempts += 1
            delivery.due_at = now + backoff_delay(delivery.attempts)
        Delivery.objects.bulk_update(claimed, ["attempts", "due_at"])
    return sorted(claimed, key=lambda delivery: delivery.pk)


def _is_grouped(delivery: Delivery) -> bool:
    if delivery.channel != Channel.MAIL or delivery.mail or writer_of(delivery.notification):
        return False
    return Preference.objects.filter(user_id=delivery.notification.user_id, is_digest=True).exists()


def _send(claimed: Sequence[Delivery], now: datetime) -> int:
    """Send them as one message, outside any transaction: the receiver may be slow. Returns the number sent."""
    user = claimed[0].notification.user
    reach = Preference.objects.filter(user=user).first() or Preference(user=user, mail=user.email)
    try:
        if not user.is_active:
            raise Refused(_("Sign-in is disabled for this person."))
        if claimed[0].channel == Channel.MAIL:
            reach.mail = claimed[0].mail or reach.mail
            outgoing.mail(reach, [delivery.notification for delivery in claimed])
        else:
            outgoing.webhook(reach, claimed[0], now=now)
    except LetterWithdrawn as error:
        return _failed(claimed, str(error), now, is_over=True)
    except (outgoing.NotificationNotSent, Refused, DecryptionError) as error:
        return _failed(claimed, str(error), now)
    return _sent(claimed, now)


def _sent(claimed: Sequence[Delivery], now: datetime) -> int:
    with unit_of_work():
        _settle(claimed[0], "", is_over=True, now=now)
        return Delivery.objects.filter(pk__in=[one.pk for one in claimed]).update(sent_at=now, error="")


def _failed(claimed: Sequence[Delivery], why: str, now: datetime, *, is_over: bool = False) -> int:
    with unit_of_work():
        for delivery in claimed:
            over = is_over or delivery.attempts >= MOST_ATTEMPTS[Channel(delivery.channel)]
            abandoned = {"abandoned_at": now} if over else {}
            Delivery.objects.filter(pk=delivery.pk).update(error=why[:300], **abandoned)
            _settle(delivery, why, is_over=over, now=now)
    return 0


def _settle(delivery: Delivery, error: str, *, is_over: bool, now: datetime) -> None:
    if delivery.channel == Channel.MAIL and (writer := writer_of(delivery.notification)):
        writer.settle(delivery.notification, error=error, is_over=is_over, now=now)
