"""Events of a job as sentences, for its timeline."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.utils.translation import gettext as _

from hekla.apps.event_log.models import Event
from hekla.apps.job_history import endings, labels, messages, victims
from hekla.apps.job_history.receipts import Receipt
from hekla.apps.sentences import together


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a timeline. `state` gives its colour."""

    number: int
    at: datetime
    state: str
    sentence: str
    actor: str


def lines(events: list[Event]) -> list[Line]:
    """The events as lines, those that say nothing to a person left out."""
    told = ((event, _tell(event.kind, event.payload)) for event in events)
    return [
        Line(event.pk, event.at, state, sentence, "" if event.actor_id is None else event.who)
        for event, (state, sentence) in told
        if sentence
    ]


def gains(receipts: Iterable[Receipt]) -> list[Line]:
    """What others gave up for it."""
    return [Line(one.number, one.at, "admitted", together([one.sentence, _("%s.") % one.rule]), "") for one in receipts]


def _tell(kind: str, facts: Mapping[str, Any]) -> tuple[str, str]:
    teller = _TELLERS.get(kind)
    return teller(facts) if teller else ("neutral", "")


def _submitted(facts: Mapping[str, Any]) -> tuple[str, str]:
    return "neutral", _("Submitted to queue %(queue)s, %(replicas)s pods.") % facts


def _placed(facts: Mapping[str, Any]) -> tuple[str, str]:
    return "neutral", _("%(span)s sent it to queue %(queue)s of cluster %(cluster)s.") % {
        **facts,
        "span": facts["federated_queue"],
    }


def _moved(facts: Mapping[str, Any]) -> tuple[str, str]:
    sentence = _("Moved from cluster %(old_cluster)s to %(cluster)s, queue %(queue)s, where it would start now.")
    return "admitted", sentence % facts


def _phase(facts: Mapping[str, Any]) -> tuple[str, str]:
    words = _PHASE_WORDS.get(facts["new"])
    sentence = str(words()) if words else facts["new"]
    message = messages.told(facts.get("message_facts", ()), facts["message"])
    return _STATES.get(facts["new"], "neutral"), together([sentence, message])


def _gang(facts: Mapping[str, Any]) -> tuple[str, str]:
    admitted = facts["new"] == "inqueue" and facts["old"] == "pending"
    return "admitted", _("Let in: its least resources fit.") if admitted else ""


def _waits(facts: Mapping[str, Any]) -> tuple[str, str]:
    """The first reason, and who could have given way."""
    told = [reason for at, reason in enumerate(facts["reasons"]) if not at or reason.get("victims")]
    return "waiting", together(map(labels.reason, told))


def _delayed(facts: Mapping[str, Any]) -> tuple[str, str]:
    return "waiting", _("The cluster does not take its pods yet, and is asked again. %(message)s") % facts


def _bound(facts: Mapping[str, Any]) -> tuple[str, str]:
    return "admitted", _("%(task)s-%(index)s placed on %(node)s.") % facts


def _pod(facts: Mapping[str, Any]) -> tuple[str, str]:
    if facts["new"] == "failed" and facts["reason"] == "Stopped":
        return "stopped", _("%(task)s-%(index)s has ended, as it was asked to.") % facts
    teller = _POD_WORDS.get(facts["new"])
    if teller is None:
        return "neutral", ""
    said = endings.detail(facts["reason"], facts["message"])
    detail = f" {said}" if said else ""
    code = _(" Exit code %s.") % facts["exit_code"] if facts["exit_code"] else ""
    return _STATES.get(facts["new"], "neutral"), (teller() % facts) + code + detail


def _stop(facts: Mapping[str, Any]) -> tuple[str, str]:
    told = {**facts, "reason": endings.stop_reason(facts["reason"])}
    return "stopped", _("%(task)s-%(index)s is asked to stop (%(reason)s).") % told


def _evicted(facts: Mapping[str, Any]) -> tuple[str, str]:
    if facts.get("for_name"):
        sentence = _("%(task)s-%(index)s must make room on %(node)s for job %(for_name)s (%(action)s).")
    elif facts.get("for_job"):
        sentence = _("%(task)s-%(index)s must make room on %(node)s for another job (%(action)s).")
    else:
        sentence = _("%(task)s-%(index)s must leave %(node)s (%(action)s).")
    action = ": ".join(filter(None, [facts["action"], _(", ").join(facts.get("plugins", ()))]))
    return "stopped", together([sentence % {**facts, "action": action}, victims.moved(facts)])


def _spared(facts: Mapping[str, Any]) -> tuple[str, str]:
    sentence = _("%(task)s-%(index)s was to leave and stays: a budget of disruptions keeps it. %(message)s")
    return "neutral", sentence % facts


def _command(facts: Mapping[str, Any]) -> tuple[str, str]:
    words = {
        "AbortJob": _("Asked to abort."),
        "ResumeJob": _("Asked to resume."),
        "RestartJob": _("Asked to restart."),
        "TerminateJob": _("Asked to terminate."),
        "CompleteJob": _("Asked to complete."),
        "RestartTask": _("Asked to restart %(task)s."),
        "RestartPod": _("Asked to restart %(task)s-%(index)s."),
        "RestartPartition": _("Asked to restart the partition of %(task)s-%(index)s."),
    }
    return "neutral", words.get(facts["action"], facts["action"]) % facts


def _changed(facts: Mapping[str, Any]) -> tuple[str, str]:
    sizes = _("; ").join(_size(name, change) for name, change in facts["changes"].items())
    return "neutral", _("Changed: %s.") % sizes


def _size(path: str, change: Mapping[str, Any]) -> str:
    if path == "priority":
        return _("its priority is %(new)s instead of %(old)s") % {"old": change.get("old"), "new": change.get("new")}
    task, _dot, field = path.rpartition(".")
    facts = {"task": task, "old": change.get("old"), "new": change.get("new")}
    if field == "replicas":
        return _("%(task)s has %(new)s replicas instead of %(old)s") % facts
    if task:
        return _("%(task)s needs at least %(new)s instead of %(old)s") % facts
    return _("all together at least %(new)s pods instead of %(old)s") % facts


def _deleted(_facts: Mapping[str, Any]) -> tuple[str, str]:
    return "stopped", _("Deleted.")


def _cleaned(_facts: Mapping[str, Any]) -> tuple[str, str]:
    return "neutral", _("What was attached to it is gone: pods, files, addresses.")


def _tagged(facts: Mapping[str, Any]) -> tuple[str, str]:
    sentence = _("Tagged “%(tag)s”.") if facts.get("is_on", True) else _("The tag “%(tag)s” was taken off.")
    return "neutral", sentence % facts


_TELLERS = {
    "JobChanged": _changed,
    "JobSubmitted": _submitted,
    "JobPlaced": _placed,
    "JobReassigned": _moved,
    "JobPhaseChanged": _phase,
    "GangPhaseChanged": _gang,
    "JobUnschedulable": _waits,
    "JobDelayed": _delayed,
    "JobCommanded": _command,
    "JobTagged": _tagged,
    "PodBound": _bound,
    "PodPhaseChanged": _pod,
    "PodStopRequested": _stop,
    "PodEvicted": _evicted,
    "PodEvictionBlocked": _spared,
    "JobDeleted": _deleted,
    "JobCleanedUp": _cleaned,
}
_STATES = {
    "pending": "waiting", "running": "running", "completed": "done", "succeeded": "done", "failed": "failed",
    "lost": "failed", "aborted": "stopped", "terminated": "stopped", "restarting": "waiting", "preparing": "admitted",
}  # fmt: skip
_PHASE_WORDS = {
    "pending": lambda: _("Pending."),
    "running": lambda: _("Running."),
    "restarting": lambda: _("Restarting."),
    "aborting": lambda: _("Aborting."),
    "aborted": lambda: _("Aborted."),
    "completing": lambda: _("Completing."),
    "completed": lambda: _("Completed."),
    "terminating": lambda: _("Terminating."),
    "terminated": lambda: _("Terminated."),
    "failed": lambda: _("Failed."),
}
_POD_WORDS = {
    "preparing": lambda: _("%(task)s-%(index)s is being prepared on %(node)s."),
    "running": lambda: _("%(task)s-%(index)s runs on %(node)s."),
    "succeeded": lambda: _("%(task)s-%(index)s succeeded."),
    "failed": lambda: _("%(task)s-%(index)s failed."),
    "lost": lambda: _("%(task)s-%(index)s was lost."),
}
