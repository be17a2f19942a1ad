"""The part of a job that a request names: partial actions must name one, and actions on the whole job must not."""

from collections.abc import Iterator

from hekla.domain.errors import Invalid, Problem
from hekla.domain.jobspec import JobSpec
from hekla.domain.lifecycle.facts import ActionTarget
from hekla.domain.policies import PARTIAL_ACTIONS, LifecycleAction
from hekla.domain.translation import translate
from hekla.domain.validation import no_task


def target_of(spec: JobSpec, action: LifecycleAction, task: str, index: int | None) -> ActionTarget | None:
    """The part of the job with this task and replica; None if no task is given. Raises Invalid with their paths."""
    problems = list(_wrong(spec, action, task, index))
    if problems:
        raise Invalid(problems)
    return ActionTarget(task, index) if task else None


def _wrong(spec: JobSpec, action: LifecycleAction, task: str, index: int | None) -> Iterator[Problem]:
    if action not in PARTIAL_ACTIONS:
        present = [name for name, value in (("task", task), ("index", index)) if value not in ("", None)]
        message = translate("{action} applies to the whole job. Remove this field.", action=action)
        yield from (Problem(name, message) for name in present)
        return
    yield from _wrong_task(spec, action, task)
    if action is LifecycleAction.RESTART_TASK and index is not None:
        message = translate("RestartTask applies to all replicas of a task. Remove this field, or use RestartPod.")
        yield Problem("index", message)
    if action is not LifecycleAction.RESTART_TASK:
        yield from _wrong_index(spec, action, task, index)


def _wrong_task(spec: JobSpec, action: LifecycleAction, task: str) -> Iterator[Problem]:
    names = [one.name for one in spec.tasks]
    if not task:
        message = translate(
            "{action} applies to a part of the job. Name the task. Available: {names}.",
            action=action,
            names=", ".join(names),
        )
        yield Problem("task", message)
    elif task not in names:
        yield Problem("task", no_task(task, names))


def _wrong_index(spec: JobSpec, action: LifecycleAction, task: str, index: int | None) -> Iterator[Problem]:
    if index is None:
        yield Problem(
            "index", translate("{action} applies to one replica. Give its index, counted from 0.", action=action)
        )
        return
    replicas = next((one.replicas for one in spec.tasks if one.name == task), None)
    if replicas is not None and not 0 <= index < replicas:
        message = translate(
            "{task} has {replicas} replicas, counted from 0. Index {index} does not exist.",
            task=task,
            replicas=replicas,
            index=index,
        )
        yield Problem("index", message)
