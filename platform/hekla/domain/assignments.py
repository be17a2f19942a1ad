"""Changes to a JobSpec document as short texts: `tasks.worker.replicas=4`, `tasks.main.env.LR=0.1`.

A path is names separated by dots, with tasks by name. The text after the first `=` is parsed as YAML, but taken as it
is for fields that hold only text. A command can be one shell line.
"""

import shlex
from collections.abc import Iterable, Mapping
from copy import deepcopy
from typing import Any

from hekla.domain import yaml_text
from hekla.domain.errors import Invalid, Problem
from hekla.domain.translation import translate
from hekla.domain.validation import quote

_TEXTS = frozenset({"env", "resources", "annotations", "files", "labels", "node_selector"})
_WORDS = frozenset({"name", "description", "kind", "queue", "environment", "image", "working_dir"})


def apply_assignments(document: Mapping[str, Any], words: Iterable[str]) -> dict[str, Any]:
    """The document with all of these assignments (`path=value`). Raises Invalid if one is not possible."""
    changed = deepcopy(dict(document))
    for word in words:
        place, equals, text = word.partition("=")
        if not equals or not all(place.split(".")):
            message = translate(
                "{word} is not in the form path=value, for example tasks.main.replicas=2.", word=quote(word)
            )
            raise Invalid([Problem("", message)])
        _assign(changed, place, text)
    return changed


def _assign(document: dict[str, Any], place: str, text: str) -> None:
    *parents, last = _names(place)
    target: Any = document
    for number, name in enumerate(parents):
        target = _task(target, name) if isinstance(target, list) else target.setdefault(name, {})
        if not isinstance(target, dict | list):
            raise Invalid(
                [Problem(place, translate("{place} has no nested fields.", place=".".join(parents[: number + 1])))]
            )
    if not isinstance(target, dict):
        message = translate("Name a task and a field, for example tasks.main.replicas=2.")
        raise Invalid([Problem(place, message)])
    value = _value(parents, last, text, place)
    if value is None:
        target.pop(last, None)
    else:
        target[last] = value


def _names(place: str) -> list[str]:
    """The names of a path. The last one may contain dots if users choose the names, for example `files.train.py`."""
    names = place.split(".")
    free = _depth(names)
    is_free = len(names) > free + 1 and names[free] in _TEXTS
    return [*names[: free + 1], ".".join(names[free + 1 :])] if is_free else names


def _depth(names: list[str]) -> int:
    """The index in a path of the field of the job or the task. A task can have the name of a field."""
    return 2 if names[0] == "tasks" else 0


def _task(tasks: list[Any], name: str) -> dict[str, Any]:
    found = [task for task in tasks if isinstance(task, dict) and task.get("name") == name]
    if not found:
        names = ", ".join(str(task.get("name")) for task in tasks if isinstance(task, dict))
        message = translate("Unknown task {name}. Available: {names}.", name=quote(name), names=names)
        raise Invalid([Problem("tasks", message)])
    task: dict[str, Any] = found[0]
    return task


def _value(parents: list[str], last: str, text: str, place: str) -> Any:  # noqa: ANN401  (JSON-like data)
    if parents and len(parents) == _depth(parents) + 1 and parents[-1] in _TEXTS:
        return None if parents[-1] == "resources" and not text else text
    if last in _WORDS:
        return text or None
    if last in ("command", "args"):
        try:
            return shlex.split(text)
        except ValueError as error:
            message = translate("Incomplete command line: a quotation mark is not closed.")
            raise Invalid([Problem(place, message)]) from error
    try:
        documents = yaml_text.read(text)
    except Invalid as error:
        raise Invalid([Problem(place, translate("{text} is not valid YAML.", text=quote(text)))]) from error
    return documents[0] if documents else None
