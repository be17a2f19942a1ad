"""Sentences about jobs: amounts, durations, and why a job waits."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from hekla.apps.event_log.phases import phase as phase  # noqa: PLC0414  (part of this module's interface)
from hekla.apps.job_history import quota_messages, victims
from hekla.apps.sentences import together
from hekla.domain import cards
from hekla.domain.resources import Resources

if TYPE_CHECKING:
    from hekla.domain.task_spec import TaskSpec  # labels are on every page, specifications are not

_MIB = 2**20
_UNITS = (("TiB", 2**40), ("GiB", 2**30), ("MiB", _MIB))
_ORDER = {"cpu": 0, "memory": 1}
_NOTHING = "–"


def amounts(resources: Resources) -> str:
    """`2 CPU, 4 GiB memory, 1 GPU`; a dash if empty."""
    return _amounts_of(resources, resources)


def exact_amounts(amounts: Mapping[str, float]) -> str:
    """As `amounts`, also where the amount is 0, with pods."""
    return _(", ").join(_amount(name, amounts[name]) for name in _ordered(amounts))


def _amounts_of(names: Iterable[str], resources: Resources) -> str:
    """The amounts of these resources, also if they are 0; a dash without names."""
    ordered = (name for name in _ordered(names) if name != "pods")
    return _(", ").join(_amount(name, resources.amount(name)) for name in ordered) or _NOTHING


def _ordered(names: Iterable[str]) -> list[str]:
    return sorted(names, key=lambda name: (_ORDER.get(name, 2), name))


def _amount(name: str, value: float) -> str:
    if name == "cpu":
        return _("%(n)g CPU") % {"n": _rounded(value)}
    if name == "memory":
        return _("%(size)s memory") % {"size": _figure(name, value)}
    if name == cards.MEMORY:
        return _("%(size)s GPU memory") % {"size": _figure(name, value)}
    if name == "pods":
        return ngettext("%(n)d pod", "%(n)d pods", int(value)) % {"n": value}
    return f"{_rounded(value):g} {quota_messages.resource(name)}"


def _rounded(value: float) -> float:
    """From thousandths, as exact as a request can be: shares are fractions of any length."""
    return round(value) / 1000


def hours_by_card(hours: Mapping[str, float]) -> str:
    """`3.0 GPU, 1.5 huawei.com/Ascend910`; empty if there is only one kind of card."""
    parts = (f"{hours[name]:.1f} {quota_messages.resource(name)}" for name in sorted(hours))
    return _(", ").join(parts) if len(hours) > 1 else ""


def _figure(name: str, value: float) -> str:
    """The number without the resource's name; memory has its unit, unless it is 0."""
    if name == "pods":
        return f"{value:g}"
    if name == cards.MEMORY:
        name, value = "memory", value / 1000 * _MIB
    if name != "memory":
        return f"{_rounded(value):g}"
    if not value:
        return "0"
    unit, size = next((unit, size) for unit, size in _UNITS if value >= size or size == _UNITS[-1][1])
    return f"{value / size:.3g} {unit}"


def duration(seconds: float) -> str:
    """A duration in its two largest units: `1 h 4 min`, `12 s`."""
    whole = max(0, round(seconds))
    if not whole and seconds > 0:
        return _("less than 1 s")
    days, hours, minutes = whole // 86_400, whole // 3600 % 24, whole // 60 % 60
    facts = {"d": days, "h": hours, "m": minutes, "s": whole % 60}
    if days:
        return _("%(d)d d %(h)d h") % facts
    if hours:
        return _("%(h)d h %(m)d min") % facts
    return _("%(m)d min %(s)d s") % facts if minutes else _("%(s)d s") % facts


def about(seconds: float) -> str:
    """As `duration`, rounded as an estimate is: `40 s`, `25 min`, `1 h 30 min`, `2 d 4 h`."""
    steps = ((60, 1), (3600, 60), (86_400, 600))
    step = next((step for below, step in steps if seconds < below), 3600)
    rounded = max(step, round(seconds / step) * step)
    if 60 <= rounded < 3600:  # noqa: PLR2004  (seconds)
        return _("%(m)d min") % {"m": rounded // 60}
    if rounded % 3600 == 0 and rounded < 86_400:  # noqa: PLR2004
        return _("%(h)d h") % {"h": rounded // 3600}
    return duration(rounded)


def waits_for(task: "TaskSpec", others: Sequence[str]) -> str:
    """When a task with dependencies starts: “starts when ps is running”."""
    names = _(", ").join(others)
    is_any = task.depends_on is not None and task.depends_on.iteration == "any" and len(others) > 1
    return (_("starts when one of %s is running") if is_any else _("starts when %s is running")) % names


def reason(data: Mapping[str, Any]) -> str:
    """Why a job waits, in words. `data`: one of the reasons in `Job.waiting`."""
    need, have = Resources.parse(data["need"]), Resources.parse(data["have"])
    if scarce := scarce_resources(data):
        need = Resources({name: need[name] for name in scarce})
    facts = {
        "need": exact_amounts(need) if need.keys() == {"pods"} else amounts(need),
        "have": amounts(Resources({name: have.amount(name) for name in need})),
        "left": _amounts_of(need, have),
        "is_scarce": not need.fits_in(have),
        "left_of": _of_all(need, data, "have"),
        "free_of": _of_all(need, data, "free"),
        "code": data["code"],
        "tasks": data["tasks"],
        "fits": data.get("fitting", 0),
        "usable": data.get("usable", 0),
        "nodes": _nodes(data["nodes"]),
        "refusals": _nodes({why: n for why, n in data["nodes"].items() if not quota_messages.lacks(why)}),
        "is_free": all(have.amount(name) == Resources.parse(data.get("free", {})).amount(name) for name in need),
        "plugin": data["plugin"],
        "queue": data.get("queue", ""),
        "victims": data.get("victims") or {},
        "used": _used(data),
        "text": data.get("text", ""),
        "ever": data["ever"],
    }
    sentence = (_BY_CODE.get(data["code"]) or _BY_CAUSE.get(data["cause"], _general))(facts)
    if not data["ever"]:
        return together([sentence, _("The job can never start with its current settings.")])
    return sentence


def scarce_resources(data: Mapping[str, Any]) -> list[str]:
    """The resources of which a job needs more than there is; all that nodes lack, if no node has enough of each.

    For a job that can never start: more than there would be without other jobs.
    """
    need, have = Resources.parse(data["need"]), Resources.parse(data["have"])
    if not data["ever"] and "fitting" not in data:
        have = Resources.parse(data.get("most", {}))
    if scarce := [name for name, amount in need.items() if amount > have.amount(name) and name != "pods"]:
        return scarce
    if "fitting" not in data or not data["ever"]:
        return []
    pods, free = data["tasks"] + data["fitting"], Resources.parse(data["free"])
    if data["tasks"] and (scarce := [n for n, amount in need.items() if amount * pods > free.amount(n)]):
        return scarce
    lacking = map(quota_messages.lacks, data["nodes"])
    return [name for name in lacking if name in need]


def _of_all(need: Resources, data: Mapping[str, Any], kind: str) -> str:
    """How much is free of all there is: `0.5 of 2 CPU`; empty if that is unknown."""
    left, most = (Resources.parse(data.get(name, {})) for name in (kind, "most"))
    return _(", ").join(part(left, most, name) for name in _ordered(need)) if "most" in data else ""


def _used(data: Mapping[str, Any]) -> str:
    """The use of a limit that is reached: `6 of 8 GPU`."""
    used, most = (Resources.parse(data.get(name, {})) for name in ("used", "most"))
    return _(", ").join(part(used, most, name) for name in sorted(data["need"]))


def _nodes(nodes: Mapping[str, int]) -> str:
    return _(", ").join(
        ngettext("%(n)d node: %(why)s", "%(n)d nodes: %(why)s", count)
        % {"n": count, "why": quota_messages.render_reason(why)}
        for why, count in nodes.items()
    )


def _capacity(facts: dict[str, Any]) -> str:
    if facts["usable"]:
        return together([_waiting_for_nodes(facts), _room(facts), _refused(facts)])
    if facts["nodes"]:
        return _("Waiting for %(need)s. No node has room (%(nodes)s).") % facts
    if facts["have"] == _NOTHING:
        return _("Waiting for %(need)s. The cluster has none free.") % facts
    return _("Waiting for %(need)s. %(have)s is free.") % facts


def _waiting_for_nodes(facts: dict[str, Any]) -> str:
    if not facts["ever"] and facts["is_scarce"]:
        return _("Needs %(need)s on one node. No node has more than %(left)s.") % facts
    if not facts["ever"]:
        return _("Needs %(need)s on one node. No node is large enough.") % facts
    if facts["tasks"] > 1:
        return _("%(tasks)d pods are waiting for %(need)s each.") % facts
    return _("Waiting for %(need)s on one node.") % facts if facts["usable"] > 1 else _general(facts)


def _room(facts: dict[str, Any]) -> str:
    """What is free on the nodes that may take the pods."""
    if not facts["ever"]:
        return ""
    if facts["usable"] == 1:
        return _room_for_all(facts)
    return _("%(free_of)s are free, at most %(left)s on one node.") % facts


def _refused(facts: dict[str, Any]) -> str:
    """The nodes that may not take them."""
    return _("Not usable: %(refusals)s.") % facts if facts["refusals"] else ""


def _quota(facts: dict[str, Any]) -> str:
    if facts["left_of"]:
        return _("Waiting for %(need)s. The queue has %(left_of)s of its share left.") % facts
    if facts["have"] == _NOTHING:
        return _("Waiting for %(need)s. The queue has used its share.") % facts
    return _("Waiting for %(need)s. The queue has %(have)s of its share left.") % facts


def _gang(facts: dict[str, Any]) -> str:
    if not facts["usable"]:
        if facts["nodes"]:
            return _("Its pods start together or not at all. %(tasks)s of them do not fit (%(nodes)s).") % facts
        return _("Its pods start together or not at all. %(tasks)s of them do not fit.") % facts
    sentence = _("Its pods start together. There is room for %(fits)d of %(all)d, each with %(need)s.")
    head = sentence % {**facts, "all": facts["fits"] + facts["tasks"]} if facts["ever"] else _waiting_for_nodes(facts)
    return together([head, _room_for_all(facts), _refused(facts)])


def _room_for_all(facts: dict[str, Any]) -> str:
    return _("%(free_of)s are free.") % facts if facts["ever"] else ""


def _priority(facts: dict[str, Any]) -> str:
    return _("Waiting for %(need)s. Jobs of higher priority come first.") % facts


def _constraint(facts: dict[str, Any]) -> str:
    return _("No node matches its constraints (%(nodes)s).") % facts


def _policy(facts: dict[str, Any]) -> str:
    return _("Waiting for %(need)s. The scheduling policy leaves %(left)s.") % facts


def _queue_closed(_facts: dict[str, Any]) -> str:
    return _("The queue is closed. The job can start when the queue opens.")


def _queue_draining(_facts: dict[str, Any]) -> str:
    return _("The queue is draining and admits no jobs. The job can start when the queue opens.")


def _cluster_full(facts: dict[str, Any]) -> str:
    if not facts["ever"]:
        return _("Needs %(need)s. The cluster is smaller than that.") % facts
    if facts["free_of"] and facts["is_free"]:
        return together([_general(facts), _room_for_all(facts)])
    if facts["free_of"]:
        return _("Waiting for %(need)s. %(free_of)s are free. Jobs admitted before leave %(left)s of them.") % facts
    facts |= {"left_of": facts["left_of"] or facts["left"]}
    return _("Waiting for %(need)s. Running and admitted jobs leave %(left_of)s.") % facts


def _no_pods(facts: dict[str, Any]) -> str:
    return _("The job has fewer pods than its minimum: %(tasks)s are missing.") % facts


def _queue_is_full(facts: dict[str, Any]) -> str:
    facts |= {"left_of": facts["left_of"] or facts["left"]}
    return _("Waiting for %(need)s. The limit of its queue leaves %(left_of)s.") % facts


def _parent_is_full(facts: dict[str, Any]) -> str:
    facts |= {"left_of": facts["left_of"] or facts["left"]}
    if facts["queue"]:
        return _("Waiting for %(need)s. The limit of the parent queue %(queue)s leaves %(left_of)s.") % facts
    return _("Waiting for %(need)s. The limit of a parent queue leaves %(left_of)s.") % facts


def _queue_overused(facts: dict[str, Any]) -> str:
    if facts["left_of"]:
        return _("Waiting for %(need)s. The queue uses all of its share: %(left_of)s are left.") % facts
    return _("Waiting for %(need)s. The queue uses all of its share.") % facts


def _tree_cycle(_facts: dict[str, Any]) -> str:
    return _("The parent queues form a cycle. Change the parent of the queue.")


def _parent_missing(_facts: dict[str, Any]) -> str:
    return _("A parent queue does not exist. Change the parent of the queue.")


def _has_children(_facts: dict[str, Any]) -> str:
    return _("The queue has child queues. Jobs start only in leaf queues.")


def _tree_not_ready(_facts: dict[str, Any]) -> str:
    return _("The queues do not form a tree, so no job can start. Fix the parents of the queues.")


def _namespace_quota(facts: dict[str, Any]) -> str:
    facts |= {"left_of": facts["left_of"] or facts["left"]}
    return _("Waiting for %(need)s. The quota of its tenant leaves %(left_of)s.") % facts


def _tenant_quota(facts: dict[str, Any]) -> str:
    return _("Waiting for %(need)s. Quota of its tenant: %(used)s in use.") % facts


def _member_quota(facts: dict[str, Any]) -> str:
    return _("Waiting for %(need)s. Quota of its owner in this tenant: %(used)s in use.") % facts


def _no_domain(facts: dict[str, Any]) -> str:
    if facts["nodes"]:
        return _("Its pods must be close together. No node group has room for all of them (%(nodes)s).") % facts
    return _("Its pods must be close together. No node group has room for all of them.")


def _no_topology_plugin(facts: dict[str, Any]) -> str:
    sentence = _(
        "Its pods must be close together in the network. The scheduling policy has no plugin “%(plugin)s”, which sees "
        "to that. Ask an admin to add it."
    )
    return sentence % facts


def _unknown_tier(_facts: dict[str, Any]) -> str:
    return _(
        "Its pods must be close together in the network, within a tier that this cluster does not have. Submit the job "
        "with another tier, or none."
    )


def _plugin_failed(facts: dict[str, Any]) -> str:
    return _("Plugin “%(plugin)s” of the scheduling policy failed. No pod starts until it is fixed.") % facts


def _nobody_preempted(facts: dict[str, Any]) -> str:
    if spared := victims.spared(facts["victims"]):
        return _("No other job of its queue can be preempted: %(spared)s.") % {"spared": spared}
    return _("No other job of its queue has a pod to preempt.")


def _nobody_reclaimed(facts: dict[str, Any]) -> str:
    if spared := victims.spared(facts["victims"]):
        return _("No other queue has pods to reclaim: %(spared)s.") % {"spared": spared}
    return _("No other queue has a pod to reclaim.")


def _never_evicts(facts: dict[str, Any]) -> str:
    sentence = ngettext(
        "%(tasks)d of its pods never evicts other pods.",
        "%(tasks)d of its pods never evict other pods.",
        facts["tasks"],
    )
    return sentence % facts


def _takes_nothing(_facts: dict[str, Any]) -> str:
    return _("Its queue cannot reclaim from others. It would exceed its deserved share.")


def _not_counted(_facts: dict[str, Any]) -> str:
    return _("No pod can be evicted for it. Candidates were counted only for the jobs before it.")


def _not_valid(_facts: dict[str, Any]) -> str:
    return _("The scheduler skips this job because its requests are contradictory.")


def _leader_says(facts: dict[str, Any]) -> str:
    return _("Volcano says: %(text)s") % facts


def _spec_not_valid(facts: dict[str, Any]) -> str:
    sentence = _(
        "The stored settings of this job are no longer valid (%(text)s). No pod of it starts. Ask an admin to fix "
        "this, or abort the job and submit it again. Hekla retries later."
    )
    return sentence % facts


def _job_fault(facts: dict[str, Any]) -> str:
    sentence = _(
        "The controller cannot process this job (%(text)s). No pod of it starts. Ask an admin to read the "
        "controller's log, or abort the job. Hekla retries later."
    )
    return sentence % facts


def _general(facts: dict[str, Any]) -> str:
    return _("Waiting for %(need)s.") % facts


_BY_CODE = {
    "queue_closed": _queue_closed,
    "queue_draining": _queue_draining,
    "cluster_is_full": _cluster_full,
    "not_enough_pods": _no_pods,
    "queue_is_full": _queue_is_full,
    "parent_queue_is_full": _parent_is_full,
    "queue_overused": _queue_overused,
    "queue_tree_cycle": _tree_cycle,
    "queue_parent_missing": _parent_missing,
    "queue_has_children": _has_children,
    "queue_tree_not_ready": _tree_not_ready,
    "namespace_quota": _namespace_quota,
    "tenant_quota": _tenant_quota,
    "member_quota": _member_quota,
    "no_domain_fits": _no_domain,
    "no_topology_plugin": _no_topology_plugin,
    "unknown_tier": _unknown_tier,
    "plugin_failed": _plugin_failed,
    "not_valid": _not_valid,
    "nobody_preempted": _nobody_preempted,
    "nobody_reclaimed": _nobody_reclaimed,
    "never_evicts": _never_evicts,
    "queue_takes_nothing": _takes_nothing,
    "victims_not_counted": _not_counted,
    "leader_says": _leader_says,
    "spec_not_valid": _spec_not_valid,
    "job_fault": _job_fault,
}
CODES = frozenset(_BY_CODE)
"""The codes of reasons that have a sentence of their own; others have that of their cause."""
_BY_CAUSE = {
    "capacity": _capacity,
    "quota": _quota,
    "gang": _gang,
    "priority": _priority,
    "constraint": _constraint,
    "policy": _policy,
}


def part(used: Resources, capacity: Resources, name: str) -> str:
    """Use and capacity, for a bar: `1.5 of 4 CPU`."""
    facts = {"used": _figure(name, used.amount(name)), "capacity": _amount(name, capacity.amount(name))}
    return _("%(used)s of %(capacity)s") % facts


def files_go(replicas: int) -> str:
    """The effect of deletion on files."""
    return ngettext(
        "The working folder of its pod is deleted permanently.",
        "The working folders of its %(n)d pods are deleted permanently.",
        replicas,
    ) % {"n": replicas}


def logs_go() -> str:
    """The effect of deletion on logs if the tenant keeps none."""
    return _("Its logs are deleted too. This tenant keeps no logs of deleted jobs.")


def retention(log_days: int, history_days: int) -> str:
    """What is kept after deletion, and for how long."""
    facts = {"logs": log_days, "history": history_days}
    sentence = _("Its settings and history are kept for %(history)d days under “Deleted” in the list of jobs.")
    if log_days:
        sentence = _(
            "Its logs are kept for %(logs)d days, its settings and history for %(history)d days, under "
            "“Deleted” in the list of jobs."
        )
    return sentence % facts
