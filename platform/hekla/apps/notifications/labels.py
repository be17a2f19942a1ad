"""Notifications as sentences, made when they are read, in the reader's language."""

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from hekla.apps.job_history import labels as jobs
from hekla.apps.job_history import messages
from hekla.apps.notifications.choices import Moment
from hekla.apps.notifications.models import Notification


def sentence(notification: Notification) -> str:
    """What happened."""
    return _SENTENCES[Moment(notification.moment)](notification)


def _started(told: Notification) -> str:
    return _("%s is running.") % told.job_name


def _ended(told: Notification) -> str:
    facts = {"job": told.job_name, "phase": jobs.phase(told.facts["phase"]), "why": _why(told)}
    return (_("%(job)s: %(phase)s. %(why)s") % facts).strip()


def _failed(told: Notification) -> str:
    return (_("%(job)s failed. %(why)s") % {"job": told.job_name, "why": _why(told)}).strip()


def _why(told: Notification) -> str:
    return messages.render_message(told.facts.get("said", ()), told.facts.get("message", ""))


def _waits(told: Notification) -> str:
    minutes = 60 * int(told.facts["minutes"])
    return _("%(job)s has waited for more than %(long)s.") % {"job": told.job_name, "long": jobs.duration(minutes)}


def _evicted(told: Notification) -> str:
    count = int(told.facts["pods"])
    return ngettext(
        "%(n)d pod of %(job)s is being evicted.", "%(n)d pods of %(job)s are being evicted.", count
    ) % {"n": count, "job": told.job_name}  # fmt: skip


def _deleting(told: Notification) -> str:
    return _("%s is about to be deleted with its logs.") % told.job_name


def _acted_for(told: Notification) -> str:
    facts = {"admin": told.facts["admin"], "reason": told.facts["reason"]}
    return _("%(admin)s is acting as you for up to one hour. Reason: %(reason)s") % facts


_SENTENCES = {
    Moment.STARTED: _started,
    Moment.ENDED: _ended,
    Moment.FAILED: _failed,
    Moment.WAITS: _waits,
    Moment.EVICTED: _evicted,
    Moment.DELETING: _deleting,
    Moment.ACTED_FOR: _acted_for,
}
