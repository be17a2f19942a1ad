"""Whether an answer to a recorded scenario agrees with what Volcano did.

A scenario without luck in it must agree exactly, cycle by cycle. Where Volcano draws lots, an answer agrees with one of
the outcomes seen; where not all of those were listed, it is enough to meet the figures that held in every one. Cases
taken from Volcano's own tests carry what those tests assert.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

Object = Mapping[str, Any]
Figures = dict[tuple[int, str, str | None], Any]


def disagreement(case: Object, answer: Object) -> str:
    """What differs, in words; empty where the answer agrees."""
    cycles = answer["cycles"]
    if "family" not in case:
        return _assertion(case, cycles[0])
    difference = _difference(case["expect"]["cycles"], cycles)
    if case["deterministic"] or not difference:
        return difference
    if any(not _difference(other["cycles"], cycles) for other in case["otherOutcomes"]):
        return ""
    return difference if case["outcomeSet"] == "closed" else _broken_figure(case, cycles)


def canonical_difference(case: Object, answer: Object) -> str | None:
    """What differs from Volcano under a fixed order of ties; None where even that order leaves a choice."""
    kind = case.get("canonical")
    if kind is None:
        return None
    if isinstance(kind, str):
        at = 0 if kind == "same" else int(kind.split()[1])
        kind = case["otherOutcomes"][at - 1] if at else case["expect"]
    return _difference(kind["cycles"], answer["cycles"])


def _difference(wanted: Sequence[Object], got: Sequence[Object]) -> str:
    for at, (want, have) in enumerate(zip(wanted, got, strict=True)):
        for what, differs in (
            ("binds", want["binds"] != have["binds"]),
            ("evicted", sorted(want["evicted"]) != sorted(have["evicted"])),
            ("pipelined", want["pipelined"] != have["pipelined"]),
            ("phases", _phases(want) != _phases(have)),
        ):
            if differs:
                return f"{what} of cycle {at + 1}"
    return ""


def _phases(cycle: Object) -> dict[str, str]:
    return {uid: group["phase"] for uid, group in cycle["podGroups"].items()}


def _broken_figure(case: Object, cycles: Sequence[Object]) -> str:
    figures = _figures(case, cycles)
    for at, kind, job, value in case["invariants"]:
        got = figures.get((at, kind, job), None if kind == "phase" else 0)
        if not _meets(kind, got, value):
            return f"{kind} of {job} in cycle {at + 1}: {got}, not {value}"
    return ""


def _meets(kind: str, got: Any, value: Any) -> bool:  # noqa: ANN401
    if not isinstance(value, list):
        return bool(got == value)
    if kind == "phase":
        return got in value
    amounts = [amount or 0 for amount in value]
    return bool(min(amounts) <= got <= max(amounts))


def _figures(case: Object, cycles: Sequence[Object]) -> Figures:
    job_of = dict(_jobs(case))
    figures: Figures = {}
    for at, cycle in enumerate(cycles):
        for kind, key in (("bound", "binds"), ("evicted", "evicted"), ("pipelined", "pipelined")):
            figures[at, kind, "*"] = len(cycle[key])
            figures |= {(at, kind, job): n for job, n in Counter(job_of.get(pod) for pod in cycle[key]).items()}
        figures |= {(at, "phase", uid): phase for uid, phase in _phases(cycle).items()}
    return figures


def _jobs(case: Object) -> Iterator[tuple[str, str]]:
    for pod in case["cluster"].get("pods", ()):
        meta = pod["metadata"]
        group = meta.get("annotations", {}).get("scheduling.k8s.io/group-name", "")
        yield f"{meta['namespace']}/{meta['name']}", f"{meta['namespace']}/{group}"


def _assertion(case: Object, got: Object) -> str:
    """What one of Volcano's own tests finds wrong."""
    want = case.get("expect") or {}
    if not want:
        known = any(not _difference([{**o, "podGroups": {}}], [{**got, "podGroups": {}}]) for o in _seen(case))
        return "" if known else "no outcome that was seen"
    if "bindMap" in want and want["bindMap"] != got["binds"]:
        return "binds"
    if "bindsNum" in want and "bindMap" not in want and want["bindsNum"] != len(got["binds"]):
        return "number of binds"
    if sorted(want.get("evicted", got["evicted"])) != sorted(got["evicted"]):
        return "evicted"
    job_of = dict(_jobs(case))
    for job, allowed in want.get("pipelinedNodes", {}).items():
        nodes = {node for pod, node in got["pipelined"].items() if job_of.get(pod) == job}
        if not nodes or not nodes <= set(allowed):
            return f"pipelined of {job}"
    return next((f"phase of {job}" for job, phase in want.get("podGroupPhase", {}).items()
                 if _phases(got).get(job) != phase), "")


def _seen(case: Object) -> list[Object]:
    return list(case["oracle"]["outcomes"])
