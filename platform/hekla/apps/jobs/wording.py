"""Sentences about jobs: amounts, and why a job waits."""

import signal
from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from hekla.domain.resources import Resources

_SIGNALS = {number.value: number.name for number in signal.Signals}
_UNITS = (("TiB", 2**40), ("GiB", 2**30), ("MiB", 2**20))
_ORDER = {"cpu": 0, "memory": 1}


def amounts(resources: Resources) -> str:
    """`2 CPU, 4 GiB memory, 1 GPU`; a dash for nothing."""
    shown = sorted((name for name in resources if name != "pods"), key=lambda name: (_ORDER.get(name, 2), name))
    return ", ".join(_amount(name, resources[name]) for name in shown) or "–"


def _amount(name: str, value: float) -> str:
    if name == "cpu":
        return _("%(n)g CPU") % {"n": value / 1000}
    if name == "memory":
        return _("%(size)s memory") % {"size": _figure(name, value)}
    return f"{value / 1000:g} {'GPU' if name.endswith('/gpu') else name}"


def _figure(name: str, value: float) -> str:
    """The number alone, with the unit of memory; nothing needs no unit."""
    if name != "memory":
        return f"{value / 1000:g}"
    if not value:
        return "0"
    unit, size = next((unit, size) for unit, size in _UNITS if value >= size or size == _UNITS[-1][1])
    return f"{value / size:.3g} {unit}"


def exit_code(code: int | None) -> str:
    """How a process ended: its code, and what that code means where it means something."""
    if code is None:
        return "–"
    signal_number = -code if code < 0 else code - 128
    if signal_number in _SIGNALS:
        return _("%(code)d, ended by %(signal)s") % {"code": code, "signal": _SIGNALS[signal_number]}
    meaning = {126: _("not executable"), 127: _("no such program")}.get(code)
    return f"{code}, {meaning}" if meaning else str(code)


def reason(data: Mapping[str, Any]) -> str:
    """Why a job waits, as one sentence that is true now."""
    need, have = Resources.parse(data["need"]), Resources.parse(data["have"])
    facts = {"need": amounts(need), "have": amounts(have), "tasks": data["tasks"], "nodes": _nodes(data["nodes"])}
    sentence = (_BY_CODE.get(data["code"]) or _BY_CAUSE.get(data["cause"], _general))(facts)
    if not data["ever"]:
        sentence += " " + _("It can never start as things are.")
    return sentence


def _nodes(nodes: Mapping[str, int]) -> str:
    return ", ".join(
        ngettext("%(n)d node: %(why)s", "%(n)d nodes: %(why)s", count) % {"n": count, "why": why}
        for why, count in nodes.items()
    )


def _capacity(facts: dict[str, Any]) -> str:
    if facts["nodes"]:
        return _("Waits for %(need)s; no node has room (%(nodes)s).") % facts
    return _("Waits for %(need)s; %(have)s is free.") % facts


def _quota(facts: dict[str, Any]) -> str:
    return _("Waits for its queue's share: it needs %(need)s, and %(have)s is left.") % facts


def _gang(facts: dict[str, Any]) -> str:
    if facts["nodes"]:
        sentence = _("Its pods start together or not at all; %(tasks)s of them found no place (%(nodes)s).")
    else:
        sentence = _("Its pods start together or not at all; %(tasks)s of them found no place.")
    return sentence % facts


def _priority(facts: dict[str, Any]) -> str:
    return _("Jobs of higher priority go first; it needs %(need)s.") % facts


def _constraint(facts: dict[str, Any]) -> str:
    return _("No node meets its conditions (%(nodes)s).") % facts


def _policy(facts: dict[str, Any]) -> str:
    return _("The scheduling policy holds it back; it needs %(need)s, and %(have)s is left.") % facts


def _queue_closed(_facts: dict[str, Any]) -> str:
    return _("Its queue is closed; it can start when the queue is opened again.")


def _cluster_full(facts: dict[str, Any]) -> str:
    return _("Waits for %(need)s; all of the cluster is given out.") % facts


def _no_pods(facts: dict[str, Any]) -> str:
    return _("It has fewer pods than it needs to start: %(tasks)s are missing.") % facts


def _general(facts: dict[str, Any]) -> str:
    return _("Waits for %(need)s.") % facts


_BY_CODE = {"queue_closed": _queue_closed, "cluster_is_full": _cluster_full, "not_enough_pods": _no_pods}
_BY_CAUSE = {
    "capacity": _capacity,
    "quota": _quota,
    "gang": _gang,
    "priority": _priority,
    "constraint": _constraint,
    "policy": _policy,
}


def part(used: Resources, capacity: Resources, name: str) -> str:
    """`1.5 of 4 CPU`, for a bar."""
    facts = {"used": _figure(name, used.amount(name)), "capacity": _amount(name, capacity.amount(name))}
    return _("%(used)s of %(capacity)s") % facts
