"""What a bulk action did, for the list that is shown next: how many jobs, which ones refused, and how to undo it."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from hekla.apps.jobs.services import BulkOutcome

SESSION = "bulk_report"
"""The key in the session, until the list has shown it."""
MOST_UNDONE = 100
"""Larger actions cannot be undone at once: the page would carry all their jobs."""
_MOST_REASONS, _MOST_NAMES = 5, 3
_OPPOSITE = {"AbortJob": "ResumeJob", "ResumeJob": "AbortJob"}


def report(action: str, outcomes: Sequence[BulkOutcome], before: Mapping[int, int], *, is_cut: bool) -> dict[str, Any]:
    """The report as JSON. `before`: the priorities before the action, by row id; `is_cut`: the list has more jobs.

    `refused`: reasons with the number and the first names of their jobs. `undo`: the action that undoes it with its
    priority and jobs, or None.
    """
    done = [outcome.job for outcome in outcomes if outcome.is_done]
    names: dict[str, list[str]] = defaultdict(list)
    for outcome in outcomes:
        if not outcome.is_done:
            names[outcome.why].append(outcome.job.name)
    refused = [
        {"why": why, "n": len(found), "names": found[:_MOST_NAMES]}
        for why, found in list(names.items())[:_MOST_REASONS]
    ]
    return {
        "action": action,
        "done": len(done),
        "refused": refused,
        "n_refused": len(outcomes) - len(done),
        "is_cut": is_cut,
        "undo": _undo(action, [str(job.uid) for job in done], {before[job.pk] for job in done}),
    }


def _undo(action: str, uids: list[str], priorities: set[int]) -> dict[str, Any] | None:
    if not 0 < len(uids) <= MOST_UNDONE:
        return None
    if action == "SetPriority" and len(priorities) == 1:
        return {"action": action, "priority": priorities.pop(), "uids": uids}
    return {"action": _OPPOSITE[action], "uids": uids} if action in _OPPOSITE else None
