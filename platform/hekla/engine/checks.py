"""What makes no sense is refused before anything is decided on it.

`require` holds a whole state to every rule, for those who hand one in. The engine itself leaves out single jobs, queues
and machines, so that one mistake does not stop everybody else. A job that is left out keeps the places it has, and
starts nothing.
"""

from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import replace
from math import isfinite

from hekla.domain.errors import Invalid, Problem
from hekla.domain.resources import MAX_AMOUNT, Resources
from hekla.engine.model import ClusterState, Job, Node, Queue, Task

Problems = tuple[Problem, ...]
_MAX_TOTAL = MAX_AMOUNT * 1000
"""The most of a resource that anything can be about: devices count in thousandths."""


def require(state: ClusterState) -> None:
    """Raises Invalid with everything that is wrong."""
    unsound, twice = {queue.name for queue in state.queues if queue_problems(queue)}, twins(state.jobs)
    found = [*_global_problems(state), *(problem for job in state.jobs for problem in wrong_with(job, unsound, twice))]
    queues = {queue.name for queue in state.queues}
    found += [problem for job in state.jobs for problem in job_problems(job, queues)]
    if found:
        raise Invalid(list(dict.fromkeys(found)))


def job_problems(job: Job, queues: Iterable[str]) -> Problems:
    """What is wrong with a job that is complete: all its tasks are there, and its queue is to be known."""
    return tuple(dict.fromkeys((*_job_problems(job), *_gang_problems(job, queues))))


def twins(jobs: tuple[Job, ...]) -> frozenset[str]:
    """The uids of jobs that are there twice, or have a task that is."""
    jobs_twice = {uid for uid, n in Counter(job.uid for job in jobs).items() if n > 1}
    tasks_twice = _tasks_twice(jobs)
    if tasks_twice:
        jobs_twice |= {job.uid for job in jobs if any(task.uid in tasks_twice for task in job.tasks)}
    return frozenset(jobs_twice)


def _tasks_twice(jobs: tuple[Job, ...]) -> set[str]:
    uids = [task.uid for job in jobs for task in job.tasks]
    return set() if len(set(uids)) == len(uids) else {uid for uid, n in Counter(uids).items() if n > 1}


def wrong_with(job: Job, unsound: Container[str], twice: Container[str], seen: set[int] | None = None) -> Problems:
    """Why a job is left out, if it is. `unsound`: queues that make no sense; `twice`: the `twins`; `seen`: amounts that
    were looked at, by the ids of their objects.
    """
    problems = list(_job_problems(job, seen))
    if job.uid in twice:
        problems.append(Problem(_path(job), "Two jobs or two tasks have the same uid."))
    if job.queue in unsound:
        problems.append(Problem(f"{_path(job)}.queue", f"Its queue {job.queue} makes no sense."))
    return tuple(problems)


# Single things.


def _job_problems(job: Job, seen: set[int] | None = None) -> Iterator[Problem]:
    """`seen`: amounts that were looked at; the tasks of a role mostly share theirs."""
    seen = set() if seen is None else seen
    if job.min_available < 0:
        yield Problem(f"{_path(job)}.min_available", "A least number of tasks is not negative.")
    if any(least < 0 for least in job.min_task_member.values()):
        yield Problem(f"{_path(job)}.min_task_member", "A least number of tasks is not negative.")
    if job.min_resources is not None and not _is_plain(job.min_resources):
        yield from _amount_problems(f"{_path(job)}.min_resources", job.min_resources)
    for task in job.tasks:
        if id(task.request) not in seen:
            problems = (
                []
                if _is_plain(task.request)
                else list(_amount_problems(f"{_path(job)}.tasks.{task.name}.request", task.request))
            )
            yield from problems
            if not problems:
                seen.add(id(task.request))


def _gang_problems(job: Job, queues: Iterable[str]) -> Iterator[Problem]:
    if job.queue not in queues:
        yield Problem(f"{_path(job)}.queue", f"There is no queue {job.queue}.")
    if job.min_available > len(job.tasks):
        message = f"It needs {job.min_available} tasks to start and has {len(job.tasks)}."
        yield Problem(f"{_path(job)}.min_available", message)
    roles = Counter(task.role for task in job.tasks)
    for role, least in job.min_task_member.items():
        if least > roles[role]:
            message = f"It needs {least} tasks of {role} to start and has {roles[role]}."
            yield Problem(f"{_path(job)}.min_task_member.{role}", message)


def queue_problems(queue: Queue) -> Problems:
    """What is wrong with a queue."""
    found = []
    if queue.weight < 0:
        found.append(Problem(f"queues.{queue.name}.weight", "A weight is not negative."))
    for name in ("capability", "guarantee", "deserved"):
        bound: Resources | None = getattr(queue, name)
        found += list(_amount_problems(f"queues.{queue.name}.{name}", bound or {}))
    return tuple(found)


def _is_plain(amounts: Mapping[str, float]) -> bool:
    """What nearly all amounts are, told quickly: their sum is a number of sane size, and none is negative."""
    values = amounts.values()
    return sum(values) <= _MAX_TOTAL and min(values, default=0.0) >= 0


def _amount_problems(path: str, amounts: Mapping[str, float]) -> Iterator[Problem]:
    for name, amount in amounts.items():
        if not isfinite(amount):
            yield Problem(f"{path}.{name}", "This is no number.")
        elif amount < 0:
            yield Problem(f"{path}.{name}", "An amount is not negative.")
        elif amount > _MAX_TOTAL:
            yield Problem(f"{path}.{name}", "This is more than any machine has.")


def _global_problems(state: ClusterState) -> Iterator[Problem]:
    for node in state.nodes:
        yield from _amount_problems(f"nodes.{node.name}.allocatable", node.allocatable)
    for queue in state.queues:
        yield from queue_problems(queue)
    for kind, names in (("nodes", [n.name for n in state.nodes]), ("queues", [q.name for q in state.queues])):
        for name, count in Counter(names).items():
            if count > 1:
                yield Problem(f"{kind}.{name}", "This name is there twice.")


def _path(job: Job) -> str:
    return f"jobs.{job.uid}"


# What is left of what makes no sense.


def tamed(node: Node) -> Node:
    """A machine whose size makes no sense holds nothing new."""
    if _is_plain(node.allocatable) or not any(_amount_problems("", node.allocatable)):
        return node
    return replace(node, allocatable=_tame(node.allocatable), unschedulable=True)


def held(job: Job) -> Job:
    """A job that is left out, as one without a queue: it holds what it holds."""
    return replace(job, queue="", min_resources=None, tasks=tuple(_tamed_task(task) for task in job.tasks))


def _tamed_task(task: Task) -> Task:
    return replace(task, request=_tame(task.request)) if any(_amount_problems("", task.request)) else task


def _tame(amounts: Mapping[str, float]) -> Resources:
    return Resources({name: n for name, n in amounts.items() if isfinite(n) and 0 <= n <= _MAX_TOTAL})
