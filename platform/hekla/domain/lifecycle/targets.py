"""Which part of a job a person means: a wish about a part must say which, and a wish about the whole must not."""

from collections.abc import Iterator

from hekla.domain.errors import Invalid, Problem
from hekla.domain.jobspec import JobSpec
from hekla.domain.lifecycle.facts import Target
from hekla.domain.policies import PARTIAL_ACTIONS, Action
from hekla.domain.validation import nearest, shown


def target_of(spec: JobSpec, action: Action, task: str, index: int | None) -> Target | None:
    """The part that is meant by a task's name and a replica's number. Raises Invalid with the paths task and index."""
    problems = list(_wrong(spec, action, task, index))
    if problems:
        raise Invalid(problems)
    return Target(task, index) if task else None


def _wrong(spec: JobSpec, action: Action, task: str, index: int | None) -> Iterator[Problem]:
    if action not in PARTIAL_ACTIONS:
        given = [name for name, value in (("task", task), ("index", index)) if value not in ("", None)]
        yield from (Problem(name, f"{action} is about all of the job; leave this out.") for name in given)
        return
    yield from _wrong_task(spec, action, task)
    if action is Action.RESTART_TASK and index is not None:
        yield Problem("index", "RestartTask is about all replicas of a task; leave this out, or ask for RestartPod.")
    if action is not Action.RESTART_TASK:
        yield from _wrong_index(spec, action, task, index)


def _wrong_task(spec: JobSpec, action: Action, task: str) -> Iterator[Problem]:
    names = [one.name for one in spec.tasks]
    there_are = f"; there are {', '.join(names)}."
    if not task:
        yield Problem("task", f"{action} is about a part of the job: say of which task{there_are}")
    elif task not in names:
        yield Problem("task", f"No task is called {shown(task)}" + (nearest(task, names) or there_are))


def _wrong_index(spec: JobSpec, action: Action, task: str, index: int | None) -> Iterator[Problem]:
    if index is None:
        yield Problem("index", f"{action} is about one replica: say which, counted from 0.")
        return
    replicas = next((one.replicas for one in spec.tasks if one.name == task), None)
    if replicas is not None and not 0 <= index < replicas:
        yield Problem("index", f"{task} has {replicas} replicas, counted from 0; there is no {index}.")
