"""The engine's pending reasons as they are stored and sent."""

from collections.abc import Iterable
from typing import Any

from hekla.domain.resources import Resources
from hekla.engine.decisions import PendingReason, VictimCounts

_MAX_REASONS = 8


def distinct(reasons: Iterable[PendingReason]) -> list[PendingReason]:
    """The first reason of each kind: a second plugin at the same limit adds no information.

    What can never change comes first. Victim counts are kept for each size of pods.
    """
    found = list({_kind(reason): reason for reason in reversed([*reasons])}.values())[::-1]
    return sorted(found, key=lambda reason: reason.ever)[:_MAX_REASONS]


def _kind(reason: PendingReason) -> tuple[str, ...]:
    size = str(reason.need.quantities()) if reason.victims else ""
    return reason.code, size


def as_data(reason: PendingReason) -> dict[str, Any]:
    """A reason as stored and sent: amounts as Kubernetes quantities. Facts that it does not have are left out."""
    data = {
        "cause": str(reason.cause),
        "action": reason.action,
        "plugin": reason.plugin,
        "code": reason.code,
        "need": reason.need.quantities(),
        "have": reason.have.quantities(),
        "tasks": reason.pods,
        "nodes": dict(sorted(reason.nodes.items(), key=lambda item: -item[1])[:10]),
        "ever": reason.ever,
    }
    if reason.limit:
        amounts = {"most": reason.limit, "free": reason.free} | ({"used": reason.used} if reason.used else {})
        data |= {name: _named(amount, reason.need).quantities() for name, amount in amounts.items()}
    if reason.usable:
        data |= {"fitting": reason.fitting, "usable": reason.usable}
    if reason.code == "parent_queue_is_full":
        data["queue"] = reason.queue
    return data | {"victims": _victims(reason.victims)} if reason.victims else data


def _named(amount: Resources, need: Resources) -> Resources:
    """What the job needs, of all that there is; amounts of 0 stay."""
    return Resources({name: amount.amount(name) for name in need})


def _victims(counts: VictimCounts) -> dict[str, Any]:
    """The counts under the names of the stored format."""
    return {
        "spared": dict(counts.spared),
        "too_little": counts.insufficient,
        "in_vain": counts.not_enough_for_job,
        "barred": {str(exclusion): number for exclusion, number in counts.excluded.items()},
        "nodes": counts.nodes,
        "of_nodes": counts.candidate_nodes,
    }
