"""Reads stored job specs that no longer parse: a plugin was uninstalled, or a rule was tightened.

The lenient form keeps every field that is valid by itself, and leaves the others out. It is enough to follow the job's
pods and to end the job. It must not be stored, and no pod may start from it.
"""

from collections.abc import Collection, Mapping
from functools import cache
from typing import Any

from pydantic import BaseModel, TypeAdapter, ValidationError

from hekla.domain.jobspec import JobSpec
from hekla.domain.resources import parse_quantity
from hekla.domain.task_spec import TaskSpec


def read_leniently(document: object, name: str) -> JobSpec:
    """The valid parts of a stored spec. `name`: of the job. It has no plugins: they might fail again."""
    stored = document if isinstance(document, Mapping) else {}
    tasks = stored.get("tasks")
    found = [one for one in tasks if isinstance(one, Mapping) and one.get("name")] if isinstance(tasks, list) else []
    fields = _valid_fields(JobSpec, stored, without={"name", "tasks", "plugins"})
    return JobSpec.model_construct(name=name, tasks=tuple(map(_task, found)), **fields)


def _task(stored: Mapping[str, Any]) -> TaskSpec:
    fields = {"command": (), **_valid_fields(TaskSpec, stored, without={"name", "resources"})}
    return TaskSpec.model_construct(name=str(stored["name"]), resources=_amounts(stored.get("resources")), **fields)


def _amounts(stored: object) -> dict[str, str]:
    """The resources with a readable amount: pods that run still hold them."""
    return {name: text for name, text in stored.items() if _is_amount(name, text)} if isinstance(stored, dict) else {}


def _is_amount(name: str, text: object) -> bool:
    try:
        parse_quantity(name, str(text))
    except ValueError:
        return False
    return isinstance(text, str)


def _valid_fields(model: type[BaseModel], stored: Mapping[str, Any], *, without: Collection[str]) -> dict[str, Any]:
    """The stored fields that are valid by themselves; rules between fields are not checked."""
    fields: dict[str, Any] = {}
    for name, adapter in _adapters(model).items():
        if name in stored and name not in without:
            try:
                fields[name] = adapter.validate_python(stored[name])
            except ValidationError:
                continue
    return fields


@cache
def _adapters(model: type[BaseModel]) -> dict[str, TypeAdapter[Any]]:
    return {name: TypeAdapter(field.rebuild_annotation()) for name, field in model.model_fields.items()}
