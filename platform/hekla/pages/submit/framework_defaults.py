"""Applies a framework to a draft: its roles, how they run, and its program. Other typed values stay."""

from collections.abc import Mapping, Sequence
from typing import Any

from django.forms import Form
from django.utils.translation import gettext as _

from hekla.pages.job_forms import passthrough_fields, policy_fields
from hekla.pages.job_forms.forms import JobForm, TaskForm
from hekla.pages.job_forms.submission_form import InitialValues, Values
from hekla.pages.submit.presets import FRAMEWORKS, KINDS, StartingForm, beginning, is_alike

HOW_A_ROLE_RUNS = ("name", "command", "depends_on", "depends_on_any", "rest", *policy_fields.OF_TASK)
_NO_FRAMEWORK = {"framework": "", **dict.fromkeys(policy_fields.OF_JOB, "")}
_WORKER = "worker"  # in most frameworks the role with most of the work
_USUAL_PLUGINS: dict[str, list[str]] = {"env": [], "svc": []}


def apply_framework(typed: InitialValues, framework: StartingForm) -> InitialValues:
    """The draft as a job of the framework."""
    new = framework.first.copy()
    job = typed.job | _NO_FRAMEWORK | new.job | {"shape": "distributed"}
    job["rest"] = _job_rest(typed.job.get("rest"), new.job.get("rest", {}))
    return InitialValues(job, _tasks(typed, new.tasks), _files(typed.files, new.files), typed.volumes)


def differences(before: InitialValues, after: InitialValues) -> list[str]:
    """The labels of the fields, and the names of the files, in which two drafts differ."""
    job = _fields(JobForm.base_fields, [(before.job, after.job)])
    texts = [{file["name"]: file["text"] for file in first.files} for first in (before, after)]
    files = [name for name in texts[0] | texts[1] if not is_alike(texts[0].get(name), texts[1].get(name))]
    volumes = [str(_("Volumes"))] if [*before.volumes] != [*after.volumes] else []
    return [*job, *_carried([(before.job, after.job)]), *_roles(before.tasks, after.tasks), *files, *volumes]


def _roles(before: Sequence[Values], after: Sequence[Values]) -> list[str]:
    """The list of roles if it has changed, and the differing fields of roles that both drafts have."""
    former, present = ({str(task["name"]): task for task in tasks} for tasks in (before, after))
    names = f"{TaskForm.base_fields['name'].label} ({', '.join(present)})"
    stayed = [(former[name], task) for name, task in present.items() if name in former]
    roles = [names] if [*former] != [*present] else []
    return [*roles, *_fields(TaskForm.base_fields, stayed), *_carried(stayed)]


def _fields(fields: Mapping[str, Any], pairs: Sequence[tuple[Values, Values]]) -> list[str]:
    """The labels of the visible fields that differ in a pair of forms."""
    labels = {name: str(field.label) for name, field in fields.items() if field.label}
    return [
        label
        for name, label in labels.items()
        if not all(is_alike(one.get(name), other.get(name)) for one, other in pairs)
    ]


def _carried(pairs: Sequence[tuple[Values, Values]]) -> list[str]:
    """The labels of the passthrough fields that differ in a pair of forms."""
    rests = [(one.get("rest") or {}, other.get("rest") or {}) for one, other in pairs]
    changed = {
        name: None
        for one, other in rests
        if isinstance(one, dict) and isinstance(other, dict)
        for name in one | other
        if one.get(name) != other.get(name)
    }
    return [*passthrough_fields.words(changed)]


def _job_rest(typed: Any, new: Values) -> Any:  # noqa: ANN401  (damaged data stays, and validation refuses it)
    """The job's passthrough fields, with the plugins of the framework in place of another framework's."""
    if typed and not isinstance(typed, dict):
        return typed
    rest = dict(typed or {})
    former = rest.pop("plugins", None)
    others = former if isinstance(former, dict) else _USUAL_PLUGINS
    others = {name: arguments for name, arguments in others.items() if name != passthrough_fields.framework_of(others)}
    plugins = others | new.get("plugins", {})
    return rest | new | ({"plugins": plugins} if plugins != _USUAL_PLUGINS else {})


def _tasks(typed: InitialValues, roles: Sequence[Values]) -> list[Values]:
    usual = {task["name"]: task for task in began_with(typed).tasks}
    found = former(roles, typed.tasks)
    return [_task(role, found.get(role["name"], {}), usual) for role in roles]


def former(roles: Sequence[Values], tasks: Sequence[Values]) -> dict[str, Values]:
    """Tasks by name, plus for each new role the task whose values it inherits: a leftover one, first for `worker`."""
    found = {str(task["name"]): task for task in tasks}
    names = [role["name"] for role in roles]
    left = [task for name, task in found.items() if name not in names]
    for name in sorted((name for name in names if name not in found), key=lambda name: name != _WORKER):
        if left:
            found[name] = left.pop(0)
    return found


def _task(role: Values, former: Values, usual: Mapping[str, Values]) -> Values:
    """The role, with the values that were typed for the task that it replaces."""
    usually = initial(TaskForm)
    began = usually | usual.get(str(former.get("name")), {})
    typed = {name: value for name, value in former.items() if not is_alike(value, began.get(name))}
    retained = {name: value for name, value in typed.items() if name not in HOW_A_ROLE_RUNS}
    return usually | role | retained | {"rest": _task_rest(former.get("rest"), role.get("rest", {}))}


def _task_rest(typed: Any, new: Values) -> Any:  # noqa: ANN401  (damaged data stays, and validation refuses it)
    if typed and not isinstance(typed, dict):
        return typed
    retained = {name: value for name, value in (typed or {}).items() if name not in ("command", "policies")}
    return retained | new


def initial(form: type[Form]) -> Values:
    """The default values of a form's fields."""
    return {name: field.initial for name, field in form.base_fields.items()}


def began_with(typed: InitialValues) -> InitialValues:
    """The likely initial draft, found by its framework and the names of its roles."""
    kind = beginning(typed.job.get("shape") or "distributed")
    described = str(typed.job.get("framework") or ""), [task["name"] for task in typed.tasks]
    for each in (*FRAMEWORKS, kind, *KINDS):
        if described == (each.first.job.get("framework", ""), [task["name"] for task in each.first.tasks]):
            return each.first
    return kind.first


def _files(typed: Sequence[Values], new: Sequence[Values]) -> list[Values]:
    """The files, with the framework's program in place of another framework's. Files that people wrote stay."""
    programs = [file["text"] for each in FRAMEWORKS for file in each.first.files]
    retained = [file for file in typed if not any(is_alike(file["text"], program) for program in programs)]
    names = {file["name"] for file in retained}
    return [*retained, *(file for file in new if file["name"] not in names)]
