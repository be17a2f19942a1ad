"""Forms with mistakes as jobs: wrong fields get harmless values, so that the other fields can be checked as well."""

from typing import Any

from django import forms

from hekla.pages.frame.durations import DurationField

_HARMLESS: dict[str, Any] = {
    "queue": "no-queue", "replicas": 1, "command": ["true"], "env": {}, "depends_on": [],
    "node_selector": {}, "tolerations": [], "ports": {},
}  # fmt: skip
# A wrong field makes these meaningless, so they are not judged.
_DEPENDENT = {
    "replicas": ("min_available", "max_replicas", "gpu_utilization"),
    "max_replicas": ("gpu_utilization",),
    "gpu_utilization": ("max_replicas",),
    "name": ("depends_on",),
}


def completed(form: forms.Form) -> dict[str, Any]:
    """The cleaned data, with a harmless value for each field that has an error. Without errors it is unchanged."""
    wrong = set(form.errors) & set(form.fields)
    wrong |= {name for cause in wrong for name in _DEPENDENT.get(cause, ())} & set(form.fields)
    return form.cleaned_data | {name: _harmless(form, name) for name in wrong}


def _harmless(form: forms.Form, name: str) -> Any:  # noqa: ANN401
    if name == "name":
        return form.prefix or "draft"  # distinct for each task
    if name == "rest":
        return {}
    return _HARMLESS.get(name, None if isinstance(form.fields[name], (forms.IntegerField, DurationField)) else "")
