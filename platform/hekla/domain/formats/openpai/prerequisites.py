"""`prerequisites`: images, and what commands refer to as `$data`, `$output` and `$script`.

Prerequisites of the plugin `cmd` have their own commands, which run before and after those of the task role.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from hekla.domain.formats.fields import Fields
from hekla.domain.translation import gettext_noop, translate
from hekla.domain.validation import not_one_of, quote, suggest

IMAGE = "dockerimage"
KINDS = (IMAGE, "script", "output", "data")
COMMANDS = "com.microsoft.pai.runtimeplugin.cmd"

_ABOUT = ("protocolVersion", "type", "name", "version", "contributor", "description", "uri")
_EVENTS = {"taskStarts": True, "taskSucceeds": False}
_LOGIN = gettext_noop("the cluster's registry credentials are used to pull images.")
_PLUGIN = gettext_noop("the only supported plugin for prerequisites is {plugin}.")
_IGNORE = gettext_noop("a failing command does not stop the script.")


class Prerequisites:
    """The prerequisites of a job, by kind and name."""

    def __init__(self, job: Fields) -> None:
        self._findings = job.findings
        self._found: dict[tuple[str, str], Mapping[str, Any]] = {}
        self._fields: dict[tuple[str, str], Fields] = {}
        self._commands: defaultdict[tuple[str, str], tuple[list[str], list[str]]] = defaultdict(lambda: ([], []))
        for place, entry in enumerate(job.sequence("prerequisites")):
            fields = Fields(entry, f"{job.at('prerequisites')}[{place}]", job.findings)
            if isinstance(entry, Mapping):
                self._add(fields, entry)

    def _add(self, fields: Fields, entry: Mapping[str, Any]) -> None:
        kind, name = fields.text("type"), fields.text("name")
        if kind not in KINDS:
            self._findings.problem(fields.at("type"), not_one_of(kind, KINDS))
        if not name:
            self._findings.problem(fields.at("name"), translate("Required."))
        if (kind, name) in self._found:
            message = translate("Another {kind} has the name {name}.", kind=kind, name=quote(name))
            self._findings.problem(fields.at("name"), message)
        self._found[kind, name], self._fields[kind, name] = entry, fields
        fields.ignore(*_ABOUT)
        if kind == IMAGE:
            if "auth" in fields:
                self._findings.not_honoured(fields.at("auth"), translate(_LOGIN))
            fields.ignore("auth")
        else:
            fields.ignore("require")
            self._commands[kind, name] = self._read_commands(fields)

    def _read_commands(self, fields: Fields) -> tuple[list[str], list[str]]:
        if fields.text("plugin") not in ("", COMMANDS):
            self._findings.not_honoured(fields.at("plugin"), translate(_PLUGIN, plugin=COMMANDS))
        if fields.text("failurePolicy") not in ("", "fail"):
            self._findings.not_honoured(fields.at("failurePolicy"), translate(_IGNORE))
        return callbacks(fields, _EVENTS)

    def chosen(self, role: Fields, field: str) -> Mapping[str, Any]:
        """The prerequisite in a field of a task role; empty, and a problem, if it does not exist."""
        name, kind = role.text(field), field.lower()
        if not name:
            return {}
        if (kind, name) not in self._found:
            self._missing(role.at(field), name, [other for which, other in self._found if which == kind])
        return self._found.get((kind, name), {})

    def use(self, role: Fields, placeholder: str) -> None:
        """Note the field of a prerequisite that a placeholder names, for example `$data.uri`: it has an effect."""
        field, _, part = placeholder.removeprefix("$").partition(".")
        if field != placeholder and (fields := self._fields.get((field, role.text(field) if field in KINDS else ""))):
            fields.ignore(part.partition(".")[0])

    def close(self) -> None:
        """Report the fields without effect, after all task roles are read."""
        for fields in self._fields.values():
            fields.close()

    def image(self, role: Fields) -> Any:  # noqa: ANN401  (the JobSpec judges it)
        """The image of a task role."""
        if "dockerImage" not in role:
            message = translate("Required: the name of a prerequisite.")
            role.findings.problem(role.at("dockerImage"), message)
        return self.chosen(role, "dockerImage").get("uri")

    def commands(self, role: Fields) -> tuple[list[str], list[str]]:
        """The commands before and after those of a task role, from the prerequisites that it lists."""
        order: list[tuple[str, str]] = []
        for place, name in enumerate(role.sequence("prerequisites")):
            self._visit(name, f"{role.at('prerequisites')}[{place}]", order, ())
        before = [line for key in order for line in self._commands[key][0]]
        return before, [line for key in reversed(order) for line in self._commands[key][1]]

    def _visit(self, name: object, path: str, order: list[tuple[str, str]], path_names: tuple[str, ...]) -> None:
        """Append a prerequisite after those that it requires; each once."""
        keys = [key for key in self._found if key[1] == name]
        if not keys or not isinstance(name, str):
            self._missing(path, name, [other for _, other in self._found])
        elif name in path_names:
            self._findings.problem(path, translate("{name} requires itself.", name=quote(name)))
        for key in keys if isinstance(name, str) and name not in path_names else ():
            if key not in order:
                for other in self._fields[key].sequence("require"):
                    self._visit(other, self._fields[key].at("require"), order, (*path_names, key[1]))
                order.append(key)

    def _missing(self, path: str, name: object, known: Sequence[str]) -> None:
        hint = suggest(str(name), known) or list_choices(known)
        message = translate("Unknown prerequisite {name}{hint}", name=quote(name), hint=hint)
        self._findings.problem(path, message)


def list_choices(known: Iterable[str]) -> str:
    """The end of a message about an unknown name: the available names."""
    names = ", ".join(known)
    return translate(". Available: {names}.", names=names) if names else translate(". None is defined.")


def callbacks(owner: Fields, events: Mapping[str, bool]) -> tuple[list[str], list[str]]:
    """The commands to run before, and those to run after; `events` says which events are before."""
    before: list[str] = []
    after: list[str] = []
    for callback in owner.list_of_fields("callbacks"):
        event, lines = callback.text("event"), texts(callback, "commands")
        if event in events:
            (before if events[event] else after).extend(lines)
        else:
            owner.findings.not_honoured(callback.at("event"), translate("Available: {names}.", names=", ".join(events)))
        callback.close()
    return before, after


def texts(owner: Fields, name: str) -> list[str]:
    """A field that must be a list of strings."""
    values = owner.sequence(name)
    for place, line in enumerate(values):
        if not isinstance(line, str):
            owner.findings.problem(
                f"{owner.at(name)}[{place}]", translate("Must be a string, not {given}.", given=quote(line))
            )
    return [line for line in values if isinstance(line, str)]
