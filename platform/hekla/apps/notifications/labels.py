"""Notifications as sentences, rendered when they are read, in the reader's language."""

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from hekla.apps.event_log import words as event_log
from hekla.apps.job_history import labels as jobs
from hekla.apps.job_history import messages
from hekla.apps.notifications.choices import Moment
from hekla.apps.notifications.models import Notification
from hekla.lib.text import show_bidi_controls


def sentence(notification: Notification) -> str:
    """The sentence of a notification, for pages, mails and webhooks. Bidirectional controls in names are shown."""
    return show_bidi_controls(_SENTENCES[Moment(notification.moment)](notification))


def _started(notice: Notification) -> str:
    return _("%s is running.") % notice.job_name


def _ended(notice: Notification) -> str:
    facts = {"job": notice.job_name, "phase": jobs.phase(notice.facts["phase"]), "why": _why(notice)}
    return (_("%(job)s: %(phase)s. %(why)s") % facts).strip()


def _failed(notice: Notification) -> str:
    return (_("%(job)s failed. %(why)s") % {"job": notice.job_name, "why": _why(notice)}).strip()


def _why(notice: Notification) -> str:
    return messages.render_message(notice.facts.get("message_facts", ()), notice.facts.get("message", ""))


def _waits(notice: Notification) -> str:
    minutes = 60 * int(notice.facts["minutes"])
    return _("%(job)s has waited for more than %(long)s.") % {"job": notice.job_name, "long": jobs.duration(minutes)}


def _evicted(notice: Notification) -> str:
    count = int(notice.facts["pods"])
    return ngettext(
        "%(n)d pod of %(job)s is being evicted.", "%(n)d pods of %(job)s are being evicted.", count
    ) % {"n": count, "job": notice.job_name}  # fmt: skip


def _deleting(notice: Notification) -> str:
    return _("%s is about to be deleted with its logs.") % notice.job_name


def _acted_for(notice: Notification) -> str:
    facts = {"admin": notice.facts["admin"], "reason": notice.facts["reason"]}
    return _("%(admin)s is acting as you for up to one hour. Reason: %(reason)s") % facts


def _credential(notice: Notification) -> str:
    label, name = event_log.KINDS[notice.facts["kind"]], notice.facts["name"]
    facts = {"what": f"{label} ({name})" if name else label, "actor": notice.facts["actor"]}
    if facts["actor"]:
        return _("Your account: %(what)s, by %(actor)s.") % facts
    return _("Your account: %(what)s. If this was not you, change your password and ask a platform admin.") % facts


_SENTENCES = {
    Moment.STARTED: _started,
    Moment.ENDED: _ended,
    Moment.FAILED: _failed,
    Moment.WAITS: _waits,
    Moment.EVICTED: _evicted,
    Moment.DELETING: _deleting,
    Moment.ACTED_FOR: _acted_for,
    Moment.CREDENTIAL: _credential,
}
