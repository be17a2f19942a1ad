"""Events of a job as sentences, for its timeline."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from hekla.apps.event_log.models import LoggedEvent
from hekla.apps.job_history import endings, labels, messages, victims
from hekla.apps.job_history.receipts import Receipt
from hekla.apps.sentences import together
from hekla.domain.events import ReleaseReason


@dataclass(frozen=True, slots=True)
class PodStep:
    """What a pod did, by which pods are grouped. `kind`: bound, stopped, or its new phase. `detail`: how it failed."""

    kind: str
    pod: str
    node: str
    detail: str = ""


@dataclass(frozen=True, slots=True)
class TimelineEntry:
    """One line of a timeline. `state` sets its colour. `step`: None if it is about anything but a step of a pod."""

    number: int
    at: datetime
    state: str
    sentence: str
    actor: str
    step: PodStep | None = None


def lines(events: list[LoggedEvent]) -> list[TimelineEntry]:
    """The events as lines, without events that mean nothing to people."""
    described = ((event, _tell(event.kind, event.payload)) for event in events)
    return [
        TimelineEntry(event.pk, event.at, state, sentence, "" if event.actor_id is None else event.who, _step(event))
        for event, (state, sentence) in described
        if sentence
    ]


def gains(receipts: Iterable[Receipt]) -> list[TimelineEntry]:
    """The evictions of other pods for this job, as lines."""
    return [
        TimelineEntry(one.number, one.at, "admitted", together([one.sentence, _("%s.") % one.rule]), "")
        for one in receipts
    ]


def _step(event: LoggedEvent) -> PodStep | None:
    """The step of a pod that the event tells; None for other events, and for phases that lines leave out."""
    facts = event.payload
    if event.kind not in ("PodBound", "PodPhaseChanged"):
        return None
    kind, detail = facts.get("new", "bound"), ""
    if kind == "failed" and facts["reason"] == "Stopped":
        kind = "stopped"
    elif kind == "failed":
        code = (_(" Exit code %s.") % facts["exit_code"]).strip() if facts["exit_code"] else ""
        detail = together([code, endings.detail(facts["reason"], facts["message"])])
    return PodStep(kind, f"{facts['task']}-{facts['index']}", facts.get("node") or "", detail)


def _tell(kind: str, facts: Mapping[str, Any]) -> tuple[str, str]:
    teller = _TELLERS.get(kind)
    return teller(facts) if teller else ("neutral", "")


def _submitted(facts: Mapping[str, Any]) -> tuple[str, str]:
    sentence = ngettext(
        "Submitted to queue %(queue)s with %(replicas)s pod.",
        "Submitted to queue %(queue)s with %(replicas)s pods.",
        facts["replicas"],
    )
    return "neutral", sentence % facts


def _placed(facts: Mapping[str, Any]) -> tuple[str, str]:
    return "neutral", _("%(federated)s assigned the job to queue %(queue)s of cluster %(cluster)s.") % {
        **facts,
        "federated": facts["federated_queue"],
    }


def _describe_cluster_change(facts: Mapping[str, Any]) -> tuple[str, str]:
    sentence = _(
        "Moved from cluster %(old_cluster)s to queue %(queue)s of cluster %(cluster)s, where it would start now."
    )
    return "admitted", sentence % facts


def _phase(facts: Mapping[str, Any]) -> tuple[str, str]:
    words = _PHASE_WORDS.get(facts["new"])
    sentence = str(words()) if words else facts["new"]
    message = messages.render_message(facts.get("message_facts", ()), facts["message"])
    return _STATES.get(facts["new"], "neutral"), together([sentence, message])


def _gang(facts: Mapping[str, Any]) -> tuple[str, str]:
    admitted = facts["new"] == "inqueue" and facts["old"] == "pending"
    return "admitted", _("Admitted: the queue has room for its minimum.") if admitted else ""


def _waits(facts: Mapping[str, Any]) -> tuple[str, str]:
    """The first reason, and those that say why other pods were not evicted."""
    reasons = [reason for at, reason in enumerate(facts["reasons"]) if not at or reason.get("victims")]
    return "waiting", together(map(labels.reason, reasons))


def _delayed(facts: Mapping[str, Any]) -> tuple[str, str]:
    return "waiting", _("The cluster rejects its pods for now. Retrying. %(message)s") % facts


def _bound(facts: Mapping[str, Any]) -> tuple[str, str]:
    return "admitted", _("%(task)s-%(index)s was bound to %(node)s.") % facts


def _released(facts: Mapping[str, Any]) -> tuple[str, str]:
    if facts["reason"] == ReleaseReason.ROOM:
        return "neutral", _("The files of %(task)s-%(index)s are deleted: the tenant has no room for them.") % facts
    if facts["reason"] == ReleaseReason.CLUSTER:
        return "neutral", _("This cluster cannot keep the files of %(task)s-%(index)s.") % facts
    return "neutral", _("The files of %(task)s-%(index)s are deleted.") % facts


def _pod(facts: Mapping[str, Any]) -> tuple[str, str]:
    if facts["new"] == "failed" and facts["reason"] == "Stopped":
        return "stopped", _("%(task)s-%(index)s stopped on request.") % facts
    teller = _POD_WORDS.get(facts["new"])
    if teller is None:
        return "neutral", ""
    detail = endings.detail(facts["reason"], facts["message"])
    code = _(" Exit code %s.") % facts["exit_code"] if facts["exit_code"] else ""
    return _STATES.get(facts["new"], "neutral"), (teller() % facts) + code + (f" {detail}" if detail else "")


def _stop(facts: Mapping[str, Any]) -> tuple[str, str]:
    words = {**facts, "reason": endings.stop_reason(facts["reason"])}
    return "stopped", _("%(task)s-%(index)s is stopping (%(reason)s).") % words


def _evicted(facts: Mapping[str, Any]) -> tuple[str, str]:
    if facts.get("for_name"):
        sentence = _("%(task)s-%(index)s on %(node)s is evicted for job %(for_name)s (%(action)s).")
    elif facts.get("for_job"):
        sentence = _("%(task)s-%(index)s on %(node)s is evicted for another job (%(action)s).")
    else:
        sentence = _("%(task)s-%(index)s is evicted from %(node)s (%(action)s).")
    action = ": ".join(filter(None, [facts["action"], _(", ").join(facts.get("plugins", ()))]))
    reason = _("Reason: %s") % facts["message"] if facts.get("message") else ""
    return "stopped", together([sentence % {**facts, "action": action}, reason, victims.describe_shares(facts)])


def _spared(facts: Mapping[str, Any]) -> tuple[str, str]:
    sentence = _("The eviction of %(task)s-%(index)s was blocked by a disruption budget. %(message)s")
    return "neutral", sentence % facts


def _command(facts: Mapping[str, Any]) -> tuple[str, str]:
    words = {
        "AbortJob": _("Abort requested."),
        "ResumeJob": _("Resume requested."),
        "RestartJob": _("Restart requested."),
        "TerminateJob": _("Termination requested."),
        "CompleteJob": _("Completion requested."),
        "RestartTask": _("Restart of %(task)s requested."),
        "RestartPod": _("Restart of %(task)s-%(index)s requested."),
        "RestartPartition": _("Restart of the partition of %(task)s-%(index)s requested."),
    }
    return "neutral", words.get(facts["action"], facts["action"]) % facts


def _changed(facts: Mapping[str, Any]) -> tuple[str, str]:
    sizes = _("; ").join(describe_change(name, change) for name, change in facts["changes"].items())
    return "neutral", _("Changed: %s.") % sizes


def describe_change(path: str, change: Mapping[str, Any]) -> str:
    """A changed field of a job as a phrase, for example `replicas of worker from 1 to 2`."""
    if path in _OF_GROUPS:
        return _OF_GROUPS[path]()
    if ".autoscaling." in path:
        return _rule(path, change)
    task, _dot, field = path.rpartition(".")
    sentence = {
        "priority": _("priority from %(old)s to %(new)s"),
        "queue": _("queue from %(old)s to %(new)s"),
        "replicas": _("replicas of %(task)s from %(old)s to %(new)s"),
    }.get(field)
    if sentence is None:
        sentence = (
            _("minimum of %(task)s from %(old)s to %(new)s")
            if task
            else _("minimum pods of the job from %(old)s to %(new)s")
        )
    return sentence % {"task": task, "old": change.get("old"), "new": change.get("new")}


def _rule(path: str, change: Mapping[str, Any]) -> str:
    task, _word, field = path.partition(".autoscaling.")
    unit = "%" if field == "gpu_utilization" else ""
    old, new = (_("off") if one is None else f"{one}{unit}" for one in (change.get("old"), change.get("new")))
    sentence = {
        "gpu_utilization": _("target GPU utilization of %(task)s from %(old)s to %(new)s"),
        "max_replicas": _("maximum replicas of %(task)s from %(old)s to %(new)s"),
    }.get(field, _("seconds until %(task)s shrinks from %(old)s to %(new)s"))
    return sentence % {"task": task, "old": old, "new": new}


def _autoscaled(facts: Mapping[str, Any]) -> tuple[str, str]:
    if facts["new"] > facts["old"]:
        sentence = _(
            "%(task)s grew from %(old)s to %(new)s replicas: its GPUs were %(busy)s%% busy, target %(target)s%%."
        )
    else:
        sentence = _(
            "%(task)s shrank from %(old)s to %(new)s replicas: its GPUs were %(busy)s%% busy, target %(target)s%%."
        )
    return "neutral", sentence % {**facts, "busy": round(facts["utilization"])}


def _deleted(_facts: Mapping[str, Any]) -> tuple[str, str]:
    return "stopped", _("Deleted.")


def _cleaned(_facts: Mapping[str, Any]) -> tuple[str, str]:
    return "neutral", _("Its pods, files and addresses were deleted.")


def _tagged(facts: Mapping[str, Any]) -> tuple[str, str]:
    sentence = _("Tag “%(tag)s” added.") if facts.get("is_on", True) else _("Tag “%(tag)s” removed.")
    return "neutral", sentence % facts


_TELLERS = {
    "JobChanged": _changed,
    "JobAutoscaled": _autoscaled,
    "JobSubmitted": _submitted,
    "JobPlaced": _placed,
    "JobReassigned": _describe_cluster_change,
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
    "PodFrozen": lambda facts: ("waiting", _("The files of %(task)s-%(index)s are kept.") % facts),
    "FrozenPodExtended": lambda facts: ("waiting", _("The files of %(task)s-%(index)s are kept longer.") % facts),
    "FrozenPodOpened": lambda facts: ("neutral", _("Job %(name)s continues where %(task)s-%(index)s failed.") % facts),
    "FrozenPodReleased": _released,
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
_OF_GROUPS = {
    "roles": lambda: _("minimum of each role"),
    "sub_groups": lambda: _("subgroups"),
    "network_topology": lambda: _("network topology"),
    "min_resources": lambda: _("resources for admission"),
}
_POD_WORDS = {
    "pending": lambda: _("%(task)s-%(index)s could not be bound to %(node)s."),
    "preparing": lambda: _("Preparing %(task)s-%(index)s on %(node)s."),
    "running": lambda: _("%(task)s-%(index)s is running on %(node)s."),
    "succeeded": lambda: _("%(task)s-%(index)s succeeded."),
    "failed": lambda: _("%(task)s-%(index)s failed."),
    "lost": lambda: _("%(task)s-%(index)s was lost."),
}
