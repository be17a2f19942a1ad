"""The list of a person's notifications, built in Python because a page has fifty of them."""

from collections.abc import Iterable

from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from hekla.apps.notifications import labels
from hekla.apps.notifications.choices import Channel, Moment
from hekla.apps.notifications.models import Delivery, Notification
from hekla.pages.frame import html
from hekla.pages.frame.html import text

STATES = {
    Moment.STARTED: "running",
    Moment.ENDED: "done",
    Moment.FAILED: "failed",
    Moment.WAITS: "waiting",
    Moment.EVICTED: "stopped",
    Moment.DELETING: "waiting",
    Moment.ACTED_FOR: "waiting",
    Moment.CREDENTIAL: "waiting",
    Moment.IDLE: "waiting",
    Moment.INVITED: "waiting",
    Moment.ALERT: "failed",
    Moment.REPORT: "done",
    Moment.REMINDED: "waiting",
    Moment.REPORT_STOPPED: "failed",
}
"""The colour of every kind of notification."""


def notification_rows(found: Iterable[Notification]) -> SafeString:
    """The events of a timeline; those that are unread stand out."""
    return SafeString("".join(map(_row, found)))


def _row(one: Notification) -> str:
    words: str = text(labels.sentence(one))
    if not one.read_at:
        words = f"<strong>{words}</strong>"
    if one.tenant_id or "job_uid" in one.facts or one.moment == Moment.INVITED:
        words = f'<a href="{text(one.page)}">{words}</a>'
    sent = "".join(map(_delivery, one.deliveries.all()))
    return html.event(SafeString(words + sent), one.at, state=STATES[Moment(one.moment)], key=f"notification-{one.pk}")


def _delivery(one: Delivery) -> str:
    """Whether it was sent outside of the console, too."""
    channel = _("Email") if one.channel == Channel.MAIL else _("Webhook")
    if one.sent_at:
        words = _("sent")
    elif one.abandoned_at:
        words = f"{_('failed')} ({one.error})"
    elif one.error:
        attempts = ngettext("1 attempt", "%(n)s attempts", one.attempts) % {"n": one.attempts}
        words = f"{attempts} ({one.error})"
    else:
        words = _("sending")
    return f' <span class="meta muted">{text(channel)}: {text(words)}.</span>'
