"""Problems between the parts of a job: repeated names, unknown dependencies, files that overlap."""

import re
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from hekla.domain.errors import Problem
from hekla.domain.resources import parse_quantity
from hekla.domain.translation import translate
from hekla.domain.validation import find_cycle, is_text, join, no_task, quote

if TYPE_CHECKING:
    from hekla.domain.task_spec import TaskSpec

MAX_HOST_NAME = 63
RESOURCE_NAME = re.compile(r"([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")


def parent_folders(path: str) -> list[str]:
    """All parent folders of a path."""
    return [str(folder) for folder in PurePosixPath(path).parents]


def resource_problem(name: str, text: str) -> Problem | None:
    if not RESOURCE_NAME.fullmatch(name) or name == "pods":
        return Problem(
            name,
            translate("{name} is not a resource. Use for example cpu, memory or nvidia.com/gpu.", name=quote(name)),
        )
    try:
        parse_quantity(name, text)
    except ValueError as error:
        return Problem(name, translate("{sentence}.", sentence=error))
    return None


def duplicate_names(tasks: Sequence["TaskSpec"]) -> list[Problem]:
    names = [task.name for task in tasks]
    return [
        Problem(join(place, "name"), translate("Another task has the name {name}.", name=quote(name)))
        for place, name in enumerate(names)
        if name in names[:place]
    ]


def duplicate_ports(tasks: Sequence["TaskSpec"]) -> list[Problem]:
    return [
        Problem(join(place, "ports", name), translate("Another task has a port {name}.", name=quote(name)))
        for place, task in enumerate(tasks)
        for name in task.ports
        if any(name in other.ports for other in tasks[:place])
    ]


def long_host_names(job: str, tasks: Sequence["TaskSpec"]) -> list[Problem]:
    """Tasks with host names that are too long. Replicas find one another by the host name `job-task-index`."""
    problems = []
    for place, task in enumerate(tasks):
        excess = len(f"{job}-{task.name}-{max(task.replicas - 1, 0)}") - MAX_HOST_NAME
        if job and excess > 0:
            message = translate(
                "The host names of its replicas would exceed {most} characters. Shorten the name of the job or "
                "the task by {excess}.",
                most=MAX_HOST_NAME,
                excess=excess,
            )
            problems.append(Problem(join(place, "name"), message))
    return problems


def unknown_dependencies(tasks: Sequence["TaskSpec"]) -> list[Problem]:
    names = [task.name for task in tasks]
    return [
        Problem(join(place, "depends_on.tasks", number), no_task(name, names))
        for place, task in enumerate(tasks)
        for number, name in enumerate(task.depends_on.tasks if task.depends_on else ())
        if name not in names
    ]


def dependency_cycles(tasks: Sequence["TaskSpec"]) -> list[Problem]:
    """The first dependency cycle of tasks, reported at one of them."""
    circle = find_cycle({task.name: task.depends_on.tasks if task.depends_on else () for task in tasks})
    return [
        Problem(
            join(place, "depends_on"),
            translate("Dependency cycle between tasks: {circle}.", circle=" → ".join(circle)),
        )
        for place, task in enumerate(tasks)
        if task.name == next(iter(circle), "")
    ]


def file_path_problem(path: str, files: Mapping[str, str]) -> str:
    if not path or len(path) > 255 or path.startswith("/") or not is_text(path) or any(c in path for c in "\\\n"):  # noqa: PLR2004
        return translate("A file name is a relative path, for example train.py or conf/model.yaml.")
    if str(PurePosixPath(path)) != path or ".." in PurePosixPath(path).parts:
        return translate("The path must stay in the working folder: no “.”, no “..”, no double or trailing slash.")
    if any(folder in files for folder in parent_folders(path)):
        return translate("A file cannot be inside another file.")
    return ""
