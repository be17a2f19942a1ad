"""Lifecycle policies as choices of the form: the action after a pod fails or is evicted, or after a task completes.

A list of policies that begins differently from what the choices write stays a passthrough value.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from django import forms
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy

from hekla.domain.policies import LifecycleAction, LifecycleEvent, LifecyclePolicy

OF_JOB = {"on_failure": LifecycleEvent.POD_FAILED, "on_eviction": LifecycleEvent.POD_EVICTED}
OF_TASK = OF_JOB | {"on_completion": LifecycleEvent.TASK_COMPLETED}
_ALONE = LifecycleEvent.TASK_COMPLETED  # never written into one policy with a loss of a pod
_ACTIONS: dict[LifecycleAction, Promise] = {
    LifecycleAction.RESTART_JOB: gettext_lazy("Restart the whole job"),
    LifecycleAction.RESTART_TASK: gettext_lazy("Restart the task of the pod"),
    LifecycleAction.RESTART_POD: gettext_lazy("Restart the pod"),
    LifecycleAction.COMPLETE_JOB: gettext_lazy("Complete the job"),
    LifecycleAction.ABORT_JOB: gettext_lazy("Abort the job. It can be resumed"),
    LifecycleAction.TERMINATE_JOB: gettext_lazy("Terminate the job"),
}
_LABELS = {
    "on_failure": gettext_lazy("When a pod fails"),
    "on_eviction": gettext_lazy("When a pod is evicted"),
    "on_completion": gettext_lazy("When the task completes"),
}
_BY_DEFAULT = {
    "on_failure": gettext_lazy("The other pods go on"),
    "on_eviction": gettext_lazy("Start the pod again"),
    "on_completion": gettext_lazy("The other tasks go on"),
}
_AS_THE_JOB = gettext_lazy("As set for the job")


def job_field(name: str) -> forms.ChoiceField:
    """The choice of the job for one of `OF_JOB`."""
    return _field(name, _BY_DEFAULT[name])


def task_field(name: str) -> forms.ChoiceField:
    """The choice of a task for one of `OF_TASK`."""
    return _field(name, _AS_THE_JOB if name in OF_JOB else _BY_DEFAULT[name])


def _field(name: str, usual: Promise) -> forms.ChoiceField:
    choices = [("", usual), *((str(action), word) for action, word in _ACTIONS.items())]
    return forms.ChoiceField(label=_LABELS[name], choices=choices, required=False)


def policies(typed: Mapping[str, Any], fields: Mapping[str, LifecycleEvent]) -> list[LifecyclePolicy]:
    """The policies of these choices. Events with one action are one policy."""
    found: dict[tuple[str, bool], list[LifecycleEvent]] = {}
    for name, event in fields.items():
        if action := typed.get(name):
            found.setdefault((action, event is _ALONE), []).append(event)
    return [
        LifecyclePolicy(events=tuple(events), action=LifecycleAction(action))
        for (action, _alone), events in found.items()
    ]


def documents(typed: Mapping[str, Any], fields: Mapping[str, LifecycleEvent]) -> list[dict[str, Any]]:
    """The same as in a JobSpec document."""
    return [policy.model_dump(mode="json", exclude_defaults=True) for policy in policies(typed, fields)]


def chosen(found: Sequence[LifecyclePolicy], fields: Mapping[str, LifecycleEvent]) -> dict[str, str]:
    """The choices whose policies the list begins with, as many as possible. Fields without a choice are empty."""
    for count in range(len(fields), 0, -1):
        choices = _read(found[:count], fields)
        written = policies(choices, fields)
        if written and written == [*found[: len(written)]]:
            return choices
    return dict.fromkeys(fields, "")


def _read(found: Iterable[LifecyclePolicy], fields: Mapping[str, LifecycleEvent]) -> dict[str, str]:
    actions = {event: policy.action for policy in found for event in policy.events if policy.action in _ACTIONS}
    return {name: str(actions.get(event, "")) for name, event in fields.items()}
