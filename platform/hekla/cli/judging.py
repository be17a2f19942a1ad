"""Whether the recording of a scenario allows an answer.

A recording with one outcome must be matched exactly. One with several outcomes allows each of them. If more outcomes
were possible than were recorded, it also allows answers that agree with the counts that all recorded outcomes share.
Compared are the bound, evicted and pipelined pods and the phases, cycle by cycle. `judging_units` judges recorded unit
tests.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hekla.cli import judging_certainties, judging_units

Document = Mapping[str, Any]
Cycle = Mapping[str, Any]
Outcome = list[dict[str, Any]]
Fact = tuple[int, str, str]
"""Cycle, kind and job (`*`: all jobs)."""


@dataclass(frozen=True, slots=True)
class CaseVerdict:
    """`met`: by these rules. `exact`: None if chance decides the outcome. `canonical`: None if no such outcome is
    known.
    """

    met: bool
    exact: bool | None = None
    canonical: bool | None = None


def judge(document: Document, answer: Outcome) -> CaseVerdict | None:
    """The verdict (a missing answer is wrong); None if the recording cannot be judged."""
    if "family" not in document and judging_units.is_portable(document):
        return CaseVerdict(bool(answer) and judging_units.is_met(document, answer))
    if not document.get("expect", {}).get("cycles"):
        return None
    certain, canonical = document.get("deterministic", True), _canonical(document)
    is_allowed = _facts(answer) in [_facts(outcome) for outcome in _accepted_outcomes(document)]
    return CaseVerdict(
        met=is_allowed or (not certain and document.get("outcomeSet") == "open" and _is_possible(document, answer)),
        exact=is_allowed if certain else None,
        canonical=None if canonical is None else _facts(answer) == _facts(canonical),
    )


def _accepted_outcomes(document: Document) -> list[Outcome]:
    others = document.get("otherOutcomes", ()) if not document.get("deterministic", True) else ()
    return [document["expect"]["cycles"], *(other["cycles"] for other in others)]


def _canonical(document: Document) -> Outcome | None:
    named = document.get("canonical")
    if isinstance(named, str):
        return _accepted_outcomes(document)[0 if named == "same" else int(named.removeprefix("outcome "))]
    return named["cycles"] if isinstance(named, dict) else None


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


# The facts that all recorded outcomes share.


def _is_possible(document: Document, answer: Outcome) -> bool:
    if len(answer) != len(document["expect"]["cycles"]):
        return False
    found = _figures(document, answer)
    agrees = all(_agrees(found, (at, kind, job), value) for at, kind, job, value in document["invariants"])
    return agrees and judging_certainties.hold(document, answer)


def _agrees(found: Mapping[Fact, Any], fact: Fact, value: object) -> bool:
    got = found.get(fact, None if fact[1] == "phase" else 0)
    if not isinstance(value, list):
        return bool(got == value)
    if fact[1] == "phase":
        return got in value
    counts = [count or 0 for count in value]
    return bool(min(counts) <= got <= max(counts))


def _figures(document: Document, answer: Outcome) -> dict[Fact, Any]:
    job_of = judging_certainties.job_of(document)
    counts: Counter[Fact] = Counter()
    phases: dict[Fact, Any] = {}
    for at, cycle in enumerate(answer):
        for kind, key in (("bound", "binds"), ("evicted", "evicted"), ("pipelined", "pipelined")):
            for pod in cycle.get(key) or ():
                counts.update([(at, kind, "*"), (at, kind, job_of.get(pod, ""))])
        phases |= {(at, "phase", name): group["phase"] for name, group in (cycle.get("podGroups") or {}).items()}
    return dict(counts) | phases
