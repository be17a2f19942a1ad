"""Whether an answer to a recorded scenario is one that the recording allows.

A recording with one outcome must be met exactly; one with several allows each of them. Judged are the bound, evicted
and promised pods and the phases, cycle by cycle.
"""

from collections.abc import Iterator, Mapping
from typing import Any

Outcome = list[dict[str, Any]]


def is_met(document: Mapping[str, Any], answer: Outcome) -> bool:
    """Whether the answer equals the recorded outcome or, where chance had a part, one of those seen."""
    return any(_facts(answer) == _facts(outcome) for outcome in _allowed(document))


def is_recorded(document: Mapping[str, Any]) -> bool:
    """Whether the recording can be judged this way."""
    return bool(document.get("expect", {}).get("cycles"))


def _allowed(document: Mapping[str, Any]) -> Iterator[Outcome]:
    yield document["expect"]["cycles"]
    if document.get("deterministic", True):
        return
    for outcome in document.get("otherOutcomes", ()):
        yield outcome["cycles"] if isinstance(outcome, dict) else outcome
    canonical = document.get("canonical")
    if isinstance(canonical, dict):
        yield canonical["cycles"]


def _facts(outcome: Outcome) -> list[tuple[Any, ...]]:
    return [
        (
            cycle.get("binds") or {},
            sorted(cycle.get("evicted") or ()),
            cycle.get("pipelined") or {},
            {name: group["phase"] for name, group in (cycle.get("podGroups") or {}).items()},
        )
        for cycle in outcome
    ]
