"""Validation of the state.

`validate` checks a whole state. The engine itself leaves out single invalid jobs, queues and nodes, so that one mistake
does not stop all others. A refused job keeps the resources that it holds and starts nothing.
"""

from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import chain
from math import isfinite
from operator import attrgetter

from hekla.domain.errors import Invalid, Problem
from hekla.domain.resources import MAX_AMOUNT, Resources
from hekla.engine.model import ClusterState, NodeSpec, PodGroupSpec, PodSpec, QueueSpec

Problems = tuple[Problem, ...]
_UID: Callable[[PodGroupSpec | PodSpec], str] = attrgetter("uid")
_PODS: Callable[[PodGroupSpec], tuple[PodSpec, ...]] = attrgetter("pods")
_MAX_TOTAL = MAX_AMOUNT * 1000
"""The largest valid amount of a resource; devices count in thousandths."""


def validate(state: ClusterState) -> None:
    """Raise Invalid with every problem of the state."""
    invalid_queues, duplicated = {queue.name for queue in state.queues if queue_problems(queue)}, duplicates(state.jobs)
    found = [
        *_global_problems(state),
        *(problem for group in state.jobs for problem in refusal_problems(group, invalid_queues, duplicated)),
    ]
    queues = {queue.name for queue in state.queues}
    found += [problem for group in state.jobs for problem in job_problems(group, queues)]
    if found:
        raise Invalid(list(dict.fromkeys(found)))


def job_problems(group: PodGroupSpec, queues: Iterable[str]) -> Problems:
    """Problems of a complete job: all its pods are in the state, and its queue must exist."""
    return tuple(dict.fromkeys((*_job_problems(group), *_minimum_problems(group, queues))))


def duplicates(groups: tuple[PodGroupSpec, ...]) -> frozenset[str]:
    """Uids of jobs that occur twice, or have a pod that does."""
    duplicate_jobs = _twice([*map(_UID, groups)])
    duplicate_pods = _twice([*map(_UID, chain.from_iterable(map(_PODS, groups)))])
    if duplicate_pods:
        duplicate_jobs |= {group.uid for group in groups if any(spec.uid in duplicate_pods for spec in group.pods)}
    return frozenset(duplicate_jobs)


def _twice(uids: list[str]) -> set[str]:
    return set() if len(set(uids)) == len(uids) else {uid for uid, n in Counter(uids).items() if n > 1}


def refusal_problems(
    group: PodGroupSpec, invalid_queues: Container[str], duplicated: Container[str], checked: set[int] | None = None
) -> Problems:
    """Why a job is refused; empty if it is not.

    `invalid_queues`: by name. `duplicated`: uids from `duplicates`. `checked`: ids of valid amounts; this call adds
    more.
    """
    problems = list(_job_problems(group, checked))
    if group.uid in duplicated:
        problems.append(Problem(_path(group), "Two jobs or two pods have the same uid."))
    if group.queue in invalid_queues:
        problems.append(Problem(f"{_path(group)}.queue", f"Queue {group.queue} is invalid."))
    return tuple(problems)


# Single objects.


def _job_problems(group: PodGroupSpec, checked: set[int] | None = None) -> Iterator[Problem]:
    """`checked`: ids of valid amounts; the pods of a role mostly share theirs."""
    checked = set() if checked is None else checked
    if group.min_available < 0:
        yield Problem(f"{_path(group)}.min_available", "A minimum number of pods must not be negative.")
    if any(least < 0 for least in group.min_task_member.values()):
        yield Problem(f"{_path(group)}.min_task_member", "A minimum number of pods must not be negative.")
    if group.min_resources is not None and not _is_valid(group.min_resources):
        yield from _amount_problems(f"{_path(group)}.min_resources", group.min_resources)
    for spec in group.pods:
        if id(spec.request) not in checked:
            problems = (
                []
                if _is_valid(spec.request)
                else list(_amount_problems(f"{_path(group)}.tasks.{spec.name}.request", spec.request))
            )
            yield from problems
            if not problems:
                checked.add(id(spec.request))


def _minimum_problems(group: PodGroupSpec, queues: Iterable[str]) -> Iterator[Problem]:
    if group.queue not in queues:
        yield Problem(f"{_path(group)}.queue", f"Unknown queue {group.queue}.")
    if group.min_available > len(group.pods):
        message = f"The job needs {group.min_available} pods to start and has {len(group.pods)}."
        yield Problem(f"{_path(group)}.min_available", message)
    roles = Counter(spec.role for spec in group.pods)
    for role, least in group.min_task_member.items():
        if least > roles[role]:
            message = f"The job needs {least} pods of task {role} to start and has {roles[role]}."
            yield Problem(f"{_path(group)}.min_task_member.{role}", message)


def queue_problems(queue: QueueSpec) -> Problems:
    """Problems of a queue."""
    found = []
    if queue.weight < 0:
        found.append(Problem(f"queues.{queue.name}.weight", "A weight must not be negative."))
    for name in ("capability", "guarantee", "deserved"):
        bound: Resources | None = getattr(queue, name)
        found += list(_amount_problems(f"queues.{queue.name}.{name}", bound or {}))
    return tuple(found)


def _is_valid(amounts: Mapping[str, float]) -> bool:
    """A quick check that passes for nearly all amounts: a finite sum in range, and none negative."""
    values = amounts.values()
    return sum(values) <= _MAX_TOTAL and min(values, default=0.0) >= 0


def _amount_problems(path: str, amounts: Mapping[str, float]) -> Iterator[Problem]:
    for name, amount in amounts.items():
        if not isfinite(amount):
            yield Problem(f"{path}.{name}", "Not a finite number.")
        elif amount < 0:
            yield Problem(f"{path}.{name}", "An amount must not be negative.")
        elif amount > _MAX_TOTAL:
            yield Problem(f"{path}.{name}", "More than any node can have.")


def _global_problems(state: ClusterState) -> Iterator[Problem]:
    for node in state.nodes:
        yield from _amount_problems(f"nodes.{node.name}.allocatable", node.allocatable)
    for queue in state.queues:
        yield from queue_problems(queue)
    for kind, names in (("nodes", [n.name for n in state.nodes]), ("queues", [q.name for q in state.queues])):
        for name, count in Counter(names).items():
            if count > 1:
                yield Problem(f"{kind}.{name}", "Duplicate name.")


def _path(group: PodGroupSpec) -> str:
    return f"jobs.{group.uid}"


# Replacements for invalid objects.


def sanitized_node(node: NodeSpec) -> NodeSpec:
    """The node; unschedulable and without its invalid amounts if it has some."""
    if _is_valid(node.allocatable) or not any(_amount_problems("", node.allocatable)):
        return node
    return replace(node, allocatable=_sanitized(node.allocatable), unschedulable=True)


def without_queue(group: PodGroupSpec) -> PodGroupSpec:
    """A refused job without queue and minimum: its pods only keep their resources."""
    return replace(group, queue="", min_resources=None, pods=tuple(_sanitized_pod(spec) for spec in group.pods))


def _sanitized_pod(spec: PodSpec) -> PodSpec:
    return replace(spec, request=_sanitized(spec.request)) if any(_amount_problems("", spec.request)) else spec


def _sanitized(amounts: Mapping[str, float]) -> Resources:
    return Resources({name: n for name, n in amounts.items() if isfinite(n) and 0 <= n <= _MAX_TOTAL})
