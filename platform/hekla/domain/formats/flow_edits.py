"""Edits of a flow in its text, one step at a time: what the drawing of a flow does to it.

The text is what a person typed. So only the steps that change are written anew; all other lines stay, with their
comments. A text in which the steps have no lines of their own (JSON, anchors) is written anew as a whole.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

import yaml

from hekla.domain import yaml_text
from hekla.domain.errors import Invalid, Problem
from hekla.domain.formats.flow_manifests import VERSION, dump_template, load_flow
from hekla.domain.formats.manifests import FLOW_KINDS
from hekla.domain.jobspec import JobSpec
from hekla.domain.translation import translate
from hekla.domain.validation import find_cycle, quote

RawStep = Mapping[str, Any]
_Change = Sequence[tuple[int | None, RawStep]]
"""The steps after an edit, each with its former place; None for a new one."""
_MOST_WRITTEN, _LENGTH_OF_ANY = 128 * 1024, 8
"""Writing takes about 10 µs for each character."""


class FlowEditKind(StrEnum):
    """What an edit does."""

    ADD = "add"
    RENAME = "rename"
    REMOVE = "remove"
    CONNECT = "connect"
    DISCONNECT = "disconnect"


@dataclass(frozen=True, slots=True)
class FlowEdit:
    """An edit of a flow.

    `step`: the step to rename, remove, or connect: it depends on `other`. A new step has the name `name`, the job of
    `template` (empty: an example in the text), and is placed after the step `other` or before the step `step`, if
    given. `name`: the new name of a renamed step, too.
    """

    kind: FlowEditKind
    step: str = ""
    other: str = ""
    name: str = ""
    template: str = ""


def apply(text: str, edit: FlowEdit) -> str:
    """The text after the edit. Raises Invalid if the text has problems, or would have: a cycle, a taken name."""
    loaded = load_flow(text)
    if loaded.flow is None:
        raise Invalid([Problem("", translate("The text has no flow."))])
    documents = yaml_text.read(text)
    place = next(place for place, one in enumerate(documents) if _is_flow(one))
    steps = documents[place]["spec"]["flows"]
    for name in _named(edit):
        _require_step(steps, name)
    example = ""
    if edit.kind is FlowEditKind.ADD and not edit.template:
        own = loaded.flow.job_name(edit.name)
        if own not in {template.name for template in loaded.templates}:  # else: of a step that was removed
            example = _example(own, edit.name, loaded.templates)
        edit = replace(edit, template=own)
    change = _CHANGES[edit.kind](steps, edit)
    _refuse_cycles([step for _origin, step in change])
    edited = _written(text, documents, place, change)
    edited = f"{example}---\n{edited}" if example else edited
    load_flow(edited)
    return edited


def _is_flow(document: Any) -> bool:  # noqa: ANN401
    return isinstance(document, dict) and document.get("kind") == FLOW_KINDS[1]


def _named(edit: FlowEdit) -> Sequence[str]:
    """The steps that must be there."""
    match edit.kind:
        case FlowEditKind.ADD:
            return [name for name in (edit.step, edit.other) if name]
        case FlowEditKind.CONNECT | FlowEditKind.DISCONNECT:
            return [edit.step, edit.other]
    return [edit.step]


def _require_step(steps: Sequence[RawStep], name: str) -> None:
    if all(step.get("name") != name for step in steps):
        raise Invalid([Problem("", translate("The flow has no step {name}.", name=quote(name)))])


def _refuse_cycles(steps: Sequence[RawStep]) -> None:
    circle = find_cycle({str(step.get("name")): _targets(step) for step in steps})
    if circle:
        message = translate(
            "Steps cannot wait for each other in a circle: {circle}.", circle=" → ".join(map(str, reversed(circle)))
        )
        raise Invalid([Problem("", message)])


def _example(name: str, word: str, templates: Sequence[JobSpec]) -> str:
    """A template with a job that prints the word, for a new step without one; in the queue of the other templates."""
    task = {"name": "main", "command": ["echo", word], "resources": {"cpu": "100m", "memory": "64Mi"}}
    queue = {"queue": templates[0].queue} if templates else {}
    return dump_template(JobSpec.parse({"name": name, "tasks": [task], **queue}))


# The steps after an edit.


def _added(steps: Sequence[RawStep], edit: FlowEdit) -> _Change:
    new: dict[str, Any] = {"name": edit.name}
    if edit.template != edit.name:
        new["template"] = edit.template
    places = [step.get("name") for step in steps]
    if edit.step:  # before this step, and after what it waited for
        at = places.index(edit.step)
        new = _depending(new, _targets(steps[at]))
        after = _depending(steps[at], [edit.name])
        return [*_unchanged(steps)[:at], (None, new), (at, after), *_unchanged(steps)[at + 1 :]]
    at = places.index(edit.other) + 1 if edit.other else len(steps)
    new = _depending(new, [edit.other] if edit.other else [])
    return [*_unchanged(steps)[:at], (None, new), *_unchanged(steps)[at:]]


def _renamed(steps: Sequence[RawStep], edit: FlowEdit) -> _Change:
    """The step with another name, and the same job."""
    found: list[tuple[int | None, RawStep]] = []
    for place, step in enumerate(steps):
        changed = step
        if edit.step in _targets(step):
            changed = _depending(step, [edit.name if one == edit.step else one for one in _targets(step)])
        if step.get("name") == edit.step:
            rest = {key: value for key, value in changed.items() if key not in {"name", "template"}}
            template = step.get("template") or edit.step
            named = {"name": edit.name} if template == edit.name else {"name": edit.name, "template": template}
            changed = {**named, **rest}
        found.append((place, changed))
    return found


def _removed(steps: Sequence[RawStep], edit: FlowEdit) -> _Change:
    """The other steps. Those that waited for the removed one wait for what it waited for."""
    if len(steps) == 1:
        raise Invalid([Problem("", translate("A flow has at least one step."))])
    gone = next(step for step in steps if step.get("name") == edit.step)
    found: list[tuple[int | None, RawStep]] = []
    for place, step in enumerate(steps):
        if step is gone:
            continue
        targets = _targets(step)
        if edit.step in targets:
            inherited = [other for one in targets for other in (_targets(gone) if one == edit.step else [one])]
            found.append((place, _depending(step, list(dict.fromkeys(inherited)))))
        else:
            found.append((place, step))
    return found


def _connected(steps: Sequence[RawStep], edit: FlowEdit) -> _Change:
    return _with_targets(steps, edit.step, lambda targets: list(dict.fromkeys([*targets, edit.other])))


def _disconnected(steps: Sequence[RawStep], edit: FlowEdit) -> _Change:
    return _with_targets(steps, edit.step, lambda targets: [one for one in targets if one != edit.other])


def _with_targets(steps: Sequence[RawStep], name: str, targets: Callable[[list[str]], list[str]]) -> _Change:
    return [
        (place, _depending(step, targets(_targets(step))) if step.get("name") == name else step)
        for place, step in enumerate(steps)
    ]


_CHANGES: Mapping[FlowEditKind, Callable[[Sequence[RawStep], FlowEdit], _Change]] = {
    FlowEditKind.ADD: _added,
    FlowEditKind.RENAME: _renamed,
    FlowEditKind.REMOVE: _removed,
    FlowEditKind.CONNECT: _connected,
    FlowEditKind.DISCONNECT: _disconnected,
}


def _unchanged(steps: Sequence[RawStep]) -> list[tuple[int | None, RawStep]]:
    return list(enumerate(steps))


def _targets(step: RawStep) -> list[str]:
    return list((step.get("dependsOn") or {}).get("targets") or ())


def _depending(step: RawStep, targets: Sequence[str]) -> dict[str, Any]:
    """The step with these dependencies; without any, its probes go too, since they are conditions on them."""
    rest = {key: value for key, value in step.items() if key != "dependsOn"}
    if not targets:
        return rest
    depends = {**(step.get("dependsOn") or {}), "targets": list(targets)}
    return {key: depends if key == "dependsOn" else value for key, value in {**step, "dependsOn": depends}.items()}


# The text after an edit.


def _written(text: str, documents: list[Any], place: int, change: _Change) -> str:
    """The text with the changed steps; written anew if they have no lines of their own."""
    flow = documents[place]
    steps = [dict(step) for _origin, step in change]
    wanted = [*documents[:place], {**flow, "spec": {**flow["spec"], "flows": steps}}, *documents[place + 1 :]]
    spliced = _spliced(text, flow["spec"]["flows"], change)
    if spliced is not None and _read_or_none(spliced) == wanted:
        return spliced
    return _dumped(wanted)


def _dumped(documents: list[Any]) -> str:
    """As `yaml_text.write`. Raises Invalid for what is long once its aliases are expanded: a short text can be huge."""
    try:
        if _length(documents) <= _MOST_WRITTEN:
            return yaml_text.write(documents)
    except ValueError as error:  # a hexadecimal number of thousands of digits
        raise Invalid([Problem("", translate("Invalid YAML: {error}.", error=error))]) from error
    raise Invalid([Problem("", translate("The flow is too long to be edited in its drawing. Edit the text."))])


def _length(data: Any) -> int:  # noqa: ANN401
    """About how many characters it has as YAML."""
    if isinstance(data, Mapping):
        return sum(_length(key) + _length(value) for key, value in data.items())
    if isinstance(data, (list, tuple, set)):
        return sum(_length(one) for one in data)
    return _LENGTH_OF_ANY + (len(data) if isinstance(data, (str, bytes)) else 0)


def _read_or_none(text: str) -> list[Any] | None:
    try:
        return yaml_text.read(text)
    except Invalid:
        return None


def _spliced(text: str, old: Sequence[RawStep], change: _Change) -> str | None:
    """The text with other lines for the changed steps; None if a step does not begin and end a line."""
    node = _steps_node(text)
    if node is None or node.flow_style or len(node.value) != len(old):
        return None
    lines, indent = text.splitlines(keepends=True), " " * node.start_mark.column
    if lines and not lines[-1].endswith(("\n", "\r")):
        lines[-1] += "\n"
    begins = [item.start_mark.line for item in node.value]
    ends = [_end(item) for item in node.value]
    own = all(
        isinstance(item, yaml.MappingNode) and lines[begin][: item.start_mark.column].strip() == "-"
        for item, begin in zip(node.value, begins, strict=True)
    )
    if not own or any(begin < end for begin, end in zip(begins[1:], ends, strict=False)):
        return None
    between = [lines[end:begin] for end, begin in zip(ends, begins[1:], strict=False)] + [[]]
    found, done = lines[: begins[0]], 0
    for origin, step in change:
        if origin is None:
            found += _lines_of(step, indent)
            continue
        found += [
            line for gone in between[done:origin] for line in gone
        ]  # the comments of the steps after a removed one
        is_changed = step is not old[origin]
        found += _lines_of(step, indent) if is_changed else lines[begins[origin] : ends[origin]]
        found += between[origin]
        done = origin + 1
    return "".join([*found, *lines[ends[-1] :]])


def _lines_of(step: RawStep, indent: str) -> list[str]:
    written = _dumped([dict(step)]).splitlines(keepends=True)
    rest = [f"{indent}  {line}" if line.strip() else line for line in written[1:]]
    return [f"{indent}- {written[0]}", *rest]


def _steps_node(text: str) -> yaml.SequenceNode | None:
    """The node of the steps in the flow's document."""
    for document in yaml_text.nodes(text):
        found = _value(document, "spec")
        kind, version = _value(document, "kind"), _value(document, "apiVersion")
        is_flow = kind is not None and (kind.value, version and version.value) == (FLOW_KINDS[1], VERSION)
        steps = _value(found, "flows") if is_flow and found is not None else None
        if isinstance(steps, yaml.SequenceNode):
            return steps
    return None


def _value(node: yaml.Node | None, key: str) -> yaml.Node | None:
    if not isinstance(node, yaml.MappingNode):
        return None
    return next((value for name, value in node.value if name.value == key), None)


def _end(node: yaml.Node) -> int:
    """The first line after the node, without the blank lines and comments that follow it."""
    if isinstance(node, yaml.CollectionNode) and not node.flow_style and node.value:
        last = node.value[-1]
        return max(_end(last[1]), _end(last[0])) if isinstance(last, tuple) else _end(last)
    if isinstance(node, yaml.ScalarNode) and node.style in {"|", ">"}:
        return int(node.end_mark.line)
    return int(node.end_mark.line) + 1
