"""Invariants of every outcome: no node over its capacity, no gang below its minimum, no pod bound twice, and only
preemptable pods evicted.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

from hekla.domain.resources import Resources
from hekla.engine import scenario
from hekla.engine.model import PodGroupSpec, PodSpec, PodStatus

Document = Mapping[str, Any]
_GROUP = "scheduling.k8s.io/group-name"
_TOLERANCE = 0.1
_HOLDING = (PodStatus.BOUND, PodStatus.RUNNING, PodStatus.RELEASING)


def job_of(document: Document) -> dict[str, str]:
    """The pod group of each pod, both as `namespace/name`."""
    found = {}
    for pod in document["cluster"].get("pods", ()):
        metadata = pod["metadata"]
        group = (metadata.get("annotations") or {}).get(_GROUP, "")
        found[f"{metadata['namespace']}/{metadata['name']}"] = f"{metadata['namespace']}/{group}"
    return found


def hold(document: Document, answer: list[dict[str, Any]]) -> bool:
    """Whether the answer keeps the invariants over all its cycles."""
    state = scenario.read(document).state
    tasks = {f"{job.namespace}/{task.name}": (job, task) for job in state.jobs for task in job.pods}
    bound = [pod for cycle in answer for pod in cycle.get("binds") or ()]
    evicted = [pod for cycle in answer for pod in cycle.get("evicted") or ()]
    return (
        len(bound) == len(set(bound))
        and all(tasks[pod][1].preemptable for pod in evicted)
        and all(_are_whole(document, tasks, answer))
        and _has_room(state.nodes, tasks, answer)
    )


def _are_whole(
    document: Document, tasks: Mapping[str, tuple[PodGroupSpec, PodSpec]], answer: list[dict[str, Any]]
) -> Iterator[bool]:
    """For each cycle and gang with newly bound pods: whether its minimum is placed."""
    if not any(p["name"] == "gang" for tier in document["conf"].get("tiers", ()) for p in tier.get("plugins", ())):
        return
    placed = Counter(
        job.uid
        for job, task in tasks.values()
        if task.status in (PodStatus.BOUND, PodStatus.RUNNING, PodStatus.SUCCEEDED)
    )
    for cycle in answer:
        fresh = Counter(tasks[pod][0].uid for pod in cycle.get("binds") or ())
        placed += fresh
        free = Counter(job.uid for job, task in tasks.values() if not any(task.request.values()))
        placed.subtract(tasks[pod][0].uid for pod in cycle.get("evicted") or ())
        yield all(placed[job.uid] + free[job.uid] >= job.min_available for job, _ in tasks.values() if fresh[job.uid])


def _has_room(nodes: Any, tasks: Mapping[str, tuple[PodGroupSpec, PodSpec]], answer: list[dict[str, Any]]) -> bool:  # noqa: ANN401
    where = {pod: task.node for pod, (_, task) in tasks.items() if task.status in _HOLDING}
    for cycle in answer:
        where |= cycle.get("binds") or {}
        used: dict[str, Resources] = defaultdict(Resources)
        for pod, node in where.items():
            used[node] += tasks[pod][1].request + Resources({"pods": 1.0})
        for node in nodes:
            if any(n > node.allocatable.amount(name) + _TOLERANCE for name, n in used[node.name].items()):
                return False
        where = {pod: node for pod, node in where.items() if pod not in set(cycle.get("evicted") or ())}
    return True
