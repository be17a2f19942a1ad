"""Whether an answer meets the assertions of a recorded unit test of Volcano. Nothing else is compared."""

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from hekla.cli.judging_certainties import job_of

Document = Mapping[str, Any]
Cycle = Mapping[str, Any]


def is_portable(document: Document) -> bool:
    """Whether the test asserts facts about a cycle's outcome, or its outcomes are recorded."""
    return document.get("portable") is not False and bool(document.get("expect") or document.get("oracle"))


def is_met(document: Document, answer: list[dict[str, Any]]) -> bool:
    """Whether the first cycle meets all assertions; without assertions, whether it is a recorded outcome."""
    expected, first = document.get("expect") or {}, answer[0]
    if not expected:
        return any(_moves(first) == _moves(outcome) for outcome in document["oracle"]["outcomes"])
    return all(_RULES[name](value, first, document) for name, value in expected.items() if name in _RULES)


def _moves(cycle: Cycle) -> tuple[Any, ...]:
    return cycle.get("binds") or {}, sorted(cycle.get("evicted") or ()), cycle.get("pipelined") or {}


def _binds(expected: Mapping[str, str], cycle: Cycle, _: Document) -> bool:
    return bool(cycle["binds"] == expected)


def _bind_count(expected: int, cycle: Cycle, document: Document) -> bool:
    return "bindMap" in document["expect"] or len(cycle["binds"]) == expected


def _evicted(expected: list[str], cycle: Cycle, _: Document) -> bool:
    return sorted(cycle["evicted"]) == sorted(expected)


def _promised(expected: Mapping[str, list[str]], cycle: Cycle, document: Document) -> bool:
    jobs = job_of(document)
    nodes = {job: {node for pod, node in cycle["pipelined"].items() if jobs.get(pod) == job} for job in expected}
    return all(nodes[job] and nodes[job] <= set(allowed) for job, allowed in expected.items())


def _phases(expected: Mapping[str, str], cycle: Cycle, _: Document) -> bool:
    groups = cycle["podGroups"]
    found = {job: groups.get(job, {}).get("phaseBeforeClose", groups.get(job, {}).get("phase")) for job in expected}
    return found == dict(expected)


def _statuses(expected: Mapping[str, Mapping[str, int]], cycle: Cycle, _: Document) -> bool:
    groups = cycle["podGroups"]
    return all(
        groups.get(job, {}).get("taskStatus", {}).get(status, 0) == count
        for job, counts in expected.items()
        for status, count in counts.items()
    )


def _binds_by_domain(expected: list[int], cycle: Cycle, document: Document) -> bool:
    """Compare the numbers of bound pods in each of the smallest domains with any."""
    cluster = document["cluster"]
    lowest = cluster["hyperNodesByTier"][min(cluster["hyperNodesByTier"], key=int)]
    domain = {node: name for name in lowest for node in cluster["hyperNodeRealNodes"].get(name, ())}
    counts = Counter(domain[node] for node in cycle["binds"].values() if node in domain)
    return sorted(counts.values()) == sorted(expected)


_RULES: Mapping[str, Callable[[Any, Cycle, Document], bool]] = {
    "bindMap": _binds,
    "bindsNum": _bind_count,
    "evicted": _evicted,
    "pipelinedNodes": _promised,
    "podGroupPhase": _phases,
    "taskStatusNums": _statuses,
    "bindNumsPerLowestHyperNode": _binds_by_domain,
}
