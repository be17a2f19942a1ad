"""The kinds of notifications, and the channels."""

from enum import StrEnum

from django.utils.translation import gettext_lazy as _


class Moment(StrEnum):
    """The kind of a notification. One without a label cannot be chosen: it is always sent."""

    STARTED = "started"
    ENDED = "ended"
    FAILED = "failed"
    WAITS = "waits"
    EVICTED = "evicted"
    DELETING = "deleting"
    ACTED_FOR = "acted_for"
    CREDENTIAL = "credential"
    IDLE = "idle"
    INVITED = "invited"
    ALERT = "alert"
    REPORT = "report"
    REMINDED = "reminded"
    REPORT_STOPPED = "report_stopped"


class Channel(StrEnum):
    """A channel of notifications."""

    PAGE = "page"
    MAIL = "mail"
    WEBHOOK = "webhook"


MOMENT_LABELS = {
    Moment.STARTED: _("Job started"),
    Moment.ENDED: _("Job finished without failure"),
    Moment.FAILED: _("Job failed"),
    Moment.WAITS: _("Job waits for a long time"),
    Moment.EVICTED: _("Pods are evicted"),
    Moment.DELETING: _("Job is about to be deleted"),
}
CHANNEL_LABELS = {Channel.PAGE: _("In the console"), Channel.MAIL: _("By email"), Channel.WEBHOOK: _("By webhook")}
DEFAULT_MOMENTS = (Moment.ENDED, Moment.FAILED, Moment.EVICTED, Moment.DELETING)
DEFAULT_CHANNELS = (Channel.PAGE,)
LONG_WAIT_MINUTES = 30
