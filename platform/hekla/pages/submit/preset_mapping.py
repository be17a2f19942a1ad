"""Applies a preset to a draft: its values replace typed ones; where the preset is empty, typed values stay."""

from collections.abc import Collection, Sequence
from typing import Any

from hekla.pages.job_forms.forms import JobForm, TaskForm
from hekla.pages.job_forms.submission_form import InitialValues, Values
from hekla.pages.submit.framework_defaults import HOW_A_ROLE_RUNS, former, initial
from hekla.pages.submit.presets import SWEEP, is_alike

_HOW_A_JOB_RUNS = ("framework", "shape", "rest")
_WITH_THEM = ("plugins", "policies", "command")  # passthrough fields


def apply_preset(typed: InitialValues, base: InitialValues, preset: InitialValues) -> InitialValues:
    """The draft with the preset's values. Where these are empty, values typed since the draft was `base` stay."""
    job = _merge_job(typed.job, initial(JobForm) | base.job, preset.job)
    return InitialValues(
        job,
        _merge_tasks(typed, base, preset.tasks),
        _merge_files(typed.files, base.files, preset.files),
        _merge_volumes(typed.volumes, base.volumes, preset.volumes),
    )


def _merge_job(typed: Values, base: Values, preset: Values) -> Values:
    """The job's values. A name that the person typed stays, and so does the shape of a sweep."""
    job = _filled(typed, base, preset, _HOW_A_JOB_RUNS)
    if typed.get("name") and not is_alike(typed["name"], base.get("name")):
        job["name"] = typed["name"]
    if typed.get("shape") == SWEEP.name:
        job["shape"] = SWEEP.name
    return job


def _merge_tasks(typed: InitialValues, base: InitialValues, roles: Sequence[Values]) -> list[Values]:
    usual = {task["name"]: task for task in base.tasks}
    found = former(roles, typed.tasks)
    pairs = [(found.get(role["name"], {}), role) for role in roles]
    return [
        _filled(one, initial(TaskForm) | usual.get(str(one.get("name")), {}), role, HOW_A_ROLE_RUNS)
        for one, role in pairs
    ]


def _filled(typed: Values, base: Values, preset: Values, decided: Collection[str]) -> Values:
    """One form: the preset's values, else the typed ones. `decided`: fields that always come from the preset."""
    retained = _typed_values(typed, base, preset, decided)
    return preset | retained | {"rest": _merge_rest(typed.get("rest"), base.get("rest") or {}, preset["rest"])}


def _merge_rest(typed: Any, base: Values, preset: Values) -> Any:  # noqa: ANN401  (damaged data is refused later)
    if typed and not isinstance(typed, dict):
        return typed
    return preset | _typed_values(typed or {}, base, preset, _WITH_THEM)


def _typed_values(typed: Values, base: Values, preset: Values, decided: Collection[str]) -> Values:
    left = {name: value for name, value in typed.items() if name not in decided and not preset.get(name)}
    return {name: value for name, value in left.items() if not is_alike(value, base.get(name))}


def _merge_volumes(typed: Sequence[Values], base: Sequence[Values], preset: Sequence[Values]) -> list[Values]:
    """The preset's volumes, then those that people added at other paths."""
    paths = {row["path"] for row in (*preset, *base)}
    return [*preset, *(row for row in typed if row["path"] not in paths)]


def _merge_files(typed: Sequence[Values], base: Sequence[Values], preset: Sequence[Values]) -> list[Values]:
    """The preset's files, then files that people wrote under other names."""
    names = {file["name"] for file in preset}
    began = [file["text"] for file in base]
    others = [file for file in typed if file["name"] not in names]
    return [*preset, *(file for file in others if not any(is_alike(file["text"], text) for text in began))]
