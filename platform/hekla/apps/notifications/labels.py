"""Notifications as sentences, rendered when they are read, in the reader's language."""

from datetime import datetime
from typing import Any

from django.utils.timezone import localtime
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from hekla.apps.event_log import words as event_log
from hekla.apps.job_history import labels as jobs
from hekla.apps.job_history import messages
from hekla.apps.notifications.choices import Moment
from hekla.apps.notifications.models import Notification
from hekla.domain.tools import Tool
from hekla.lib.text import show_bidi_controls


def sentence(notification: Notification) -> str:
    """The sentence of a notification, for pages, mails and webhooks. Bidirectional controls in names are shown."""
    kinds = _OF_BATCHES if "batch" in notification.facts else SENTENCES
    return show_bidi_controls(kinds[Moment(notification.moment)](notification))


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


def _idle(notice: Notification) -> str:
    ends_at = localtime(datetime.fromisoformat(notice.facts["ends_at"]))
    facts = {"job": notice.facts["job"], "at": f"{ends_at:%Y-%m-%d %H:%M %Z}"}
    if "tool" not in notice.facts:
        return _("The GPUs of %(job)s are idle. Unless it uses them, it is aborted at %(at)s.") % facts
    facts["session"] = Tool(notice.facts["tool"]).label or _("a port")
    return _("Your session with %(session)s in %(job)s is idle. Unless you use it, it ends at %(at)s.") % facts


def _invited(notice: Notification) -> str:
    facts = {"actor": notice.facts["actor"], "job": notice.facts["job"]}
    if notice.facts["tool"] == "terminal":
        return _("%(actor)s invites you to a terminal of job %(job)s.") % facts
    return _("%(actor)s invites you to a session of job %(job)s.") % facts


def _alert(notice: Notification) -> str:
    facts, more = notice.facts, int(notice.facts["count"]) - 1
    about = facts["about"] if not more else _("%(first)s and %(n)d more") % {"first": facts["about"], "n": more}
    words = {"rule": facts["rule"], "about": about}
    if facts["moment"] == "announce":
        return _announced(facts, words)
    if facts["moment"] == "clear":
        return _("Alert %(rule)s is over: %(about)s.") % words
    if facts["value"] is None:
        return _("Alert %(rule)s: %(about)s.") % words
    words |= {"value": f"{facts['value']:.4g}", "threshold": f"{facts['threshold']:.4g}"}
    if facts.get("is_flapping"):
        return _("Alert %(rule)s flaps: %(about)s. Value %(value)s, threshold %(threshold)s.") % words
    return _("Alert %(rule)s: %(about)s. Value %(value)s, threshold %(threshold)s.") % words


def _announced(facts: dict[str, Any], words: dict[str, str]) -> str:
    """What a rule is about to change, and until when a person can forbid it."""
    due = localtime(datetime.fromisoformat(facts["due_at"]))
    words |= {"at": f"{due:%Y-%m-%d %H:%M %Z}"}
    sentences = {
        "cordon": _("Alert %(rule)s cordons %(about)s at %(at)s. You can veto that on its page."),
        "label_node": _("Alert %(rule)s labels %(about)s at %(at)s. You can veto that on its page."),
        "hold_queue": _("Alert %(rule)s holds a queue because of %(about)s at %(at)s. You can veto that on its page."),
        "stop_job": _("Alert %(rule)s aborts %(about)s at %(at)s. You can veto that on its page."),
    }
    return sentences[facts["action"]] % words


def _report(notice: Notification) -> str:
    return _("Report %s is ready.") % str(notice.facts["report"])


def _report_stopped(notice: Notification) -> str:
    return _("Report %s is not sent any more: you may not see what it is about.") % str(notice.facts["report"])


def _reminded(notice: Notification) -> str:
    facts = {"actor": notice.facts["actor"], "job": notice.facts["job"]}
    if notice.facts["cause"] == "unused":
        return _("%(actor)s asks you to look at %(job)s: it holds GPUs that it does not use.") % facts
    return _("%(actor)s asks you to look at %(job)s: it seems to make no progress.") % facts


SENTENCES = {
    Moment.STARTED: _started,
    Moment.ENDED: _ended,
    Moment.FAILED: _failed,
    Moment.WAITS: _waits,
    Moment.EVICTED: _evicted,
    Moment.DELETING: _deleting,
    Moment.ACTED_FOR: _acted_for,
    Moment.CREDENTIAL: _credential,
    Moment.IDLE: _idle,
    Moment.INVITED: _invited,
    Moment.ALERT: _alert,
    Moment.REPORT: _report,
    Moment.REMINDED: _reminded,
    Moment.REPORT_STOPPED: _report_stopped,
}


def _batch_ended(notice: Notification) -> str:
    facts = notice.facts
    words = [
        (facts["completed"], ngettext("%(n)d job completed", "%(n)d jobs completed", facts["completed"])),
        (facts["failed"], ngettext("%(n)d failed", "%(n)d failed", facts["failed"])),
        (facts["stopped"], ngettext("%(n)d was stopped", "%(n)d were stopped", facts["stopped"])),
    ]
    counts = _(", ").join(text % {"n": count} for count, text in words if count)
    sentence = _("Batch %(batch)s has ended: %(counts)s.") % {"batch": facts["batch_name"], "counts": counts}
    if not facts.get("best"):
        return sentence
    best = {"job": facts["best"], "metric": facts["metric"], "value": f"{facts['value']:.4g}"}
    return sentence + _(" Best run: %(job)s (%(metric)s %(value)s).") % best


def _batch_started(notice: Notification) -> str:
    facts = {"job": notice.job_name, "batch": notice.facts["batch_name"]}
    return _("%(job)s is running, the first job of batch %(batch)s.") % facts


def _batch_waits(notice: Notification) -> str:
    long = jobs.duration(60 * int(notice.facts["minutes"]))
    facts = {"job": notice.job_name, "batch": notice.facts["batch_name"], "long": long}
    return _("%(job)s of batch %(batch)s has waited for more than %(long)s.") % facts


def _batch_deleting(notice: Notification) -> str:
    return _("Jobs of batch %s are about to be deleted with their logs.") % str(notice.facts["batch_name"])


_OF_BATCHES = {
    Moment.STARTED: _batch_started,
    Moment.ENDED: _batch_ended,
    Moment.FAILED: _batch_ended,
    Moment.WAITS: _batch_waits,
    Moment.DELETING: _batch_deleting,
}
