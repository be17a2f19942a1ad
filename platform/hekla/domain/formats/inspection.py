"""A manifest as an editor needs it: the line of each problem, and the fields that its reader knows at each place."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from typing import Any, Generic, TypeVar

from hekla.domain import yaml_text
from hekla.domain.errors import Invalid, Problem
from hekla.domain.formats import manifests, registry
from hekla.domain.formats.base import LoadedJob
from hekla.domain.formats.fields import Findings
from hekla.domain.formats.flow_manifests import LoadedFlow, load_flow_documents
from hekla.domain.jobspec import JobSpec
from hekla.domain.policies import POLICY_ACTIONS, POLICY_EVENTS
from hekla.domain.yaml_lines import YamlLines

Loaded = TypeVar("Loaded")
_Read = Callable[[list[Any], Findings], Loaded]
_FieldNames = Mapping[str, Sequence[str]]
_Usual = Callable[[Sequence[Any]], _FieldNames]
"""The fields where no reader of manifests has read."""
_MOST_DEPTH = 12


@dataclass(frozen=True, slots=True)
class Inspection(Generic[Loaded]):
    """What is in the text. `loaded`: None if it has problems; the paths of these are in the text.

    `fields`: by path, such as `spec.tasks[0]`, the names of the fields that may be there. Of a text that is not YAML,
    those of the text without the line at the mistake: a name is half typed there. If that is no YAML either, none.
    """

    loaded: Loaded | None
    problems: tuple[Problem, ...]
    fields: Mapping[str, Sequence[str]]
    _findings: Findings
    _lines: YamlLines

    def line_of(self, path: str) -> int:
        """The line, from 1, of a path in the text."""
        return self._lines.line_of(path)

    def line_of_part(self, path: str) -> int:
        """The line of a part of the JobSpec or FlowSpec, by its path there."""
        return self._lines.line_of(self._findings.place_of(path))


def inspect(text: str) -> Inspection[LoadedJob]:
    """Everything that can be said about a job manifest of any kind, valid or not."""
    return _inspect(text, lambda documents, findings: manifests.load_documents(documents, findings=findings), _of_job)


def inspect_flow(text: str) -> Inspection[LoadedFlow]:
    """The same for a flow and its templates."""
    return _inspect(text, load_flow_documents, lambda _documents: {"": ["apiVersion", "kind", "metadata", "spec"]})


def _inspect(text: str, read: _Read[Loaded], usual: _Usual) -> Inspection[Loaded]:
    findings, lines = Findings(), YamlLines(text)
    try:
        documents = yaml_text.read(text)
    except Invalid as error:
        fields = _fields_beside(text, lines.line_of(""), read, usual)
        return Inspection(None, error.problems, fields, findings, lines)
    loaded: Loaded | None = None
    problems: tuple[Problem, ...] = ()
    try:
        loaded = read(documents, findings)
    except Invalid as error:
        problems = error.problems
    return Inspection(loaded, problems, _fields(documents, findings, usual), findings, lines)


def values() -> dict[str, Sequence[str]]:
    """By the name of a field, the values that it can have, for fields with a fixed list of values."""
    actions, events = [*map(str, POLICY_ACTIONS)], [*map(str, POLICY_EVENTS)]
    kinds = list(dict.fromkeys(form.kind for form in registry.FORMATS if not form.recognise))
    versions = list(dict.fromkeys(form.api_version for form in registry.FORMATS if not form.recognise))
    return {"action": actions, "event": events, "events": events, "kind": kinds, "apiVersion": versions}


def _fields_beside(text: str, mistake: int, read: _Read[Any], usual: _Usual) -> _FieldNames:
    """The fields of a text without the line before the mistake, where a colon is missing, or that of the mistake."""
    lines = text.split("\n")
    for line in (mistake - 1, mistake):
        others = "\n".join([*lines[: max(line - 1, 0)], *lines[line:]])
        findings = Findings()
        try:
            documents = yaml_text.read(others)
        except Invalid:
            continue
        with suppress(Invalid):
            read(documents, findings)
        return _fields(documents, findings, usual)
    return {}


def _fields(documents: Sequence[Any], findings: Findings, usual: _Usual) -> _FieldNames:
    found = {path: sorted(set().union(*names)) for path, names in findings.known.items()}
    return found or usual(documents)


def _of_job(documents: Sequence[Any]) -> _FieldNames:
    """The fields of a JobSpec document, or of a text that is still empty."""
    if not all(isinstance(document, dict) for document in documents[:1]):
        return {}
    schema = _job_schema()
    found = dict(_of_schema(schema, schema["$defs"], documents[0] if documents else {}, ""))
    return found if documents else {"": [*found[""], "apiVersion", "kind"]}


@cache
def _job_schema() -> Mapping[str, Any]:
    return JobSpec.model_json_schema()


def _of_schema(
    schema: Mapping[str, Any], models: Mapping[str, Any], value: object, path: str, depth: int = _MOST_DEPTH
) -> Iterator[tuple[str, Sequence[str]]]:
    """The names of the properties at each path of a document, from its JSON schema."""
    schema = _resolved(schema, models)
    if depth == 0:
        return
    if "properties" in schema:
        yield path, [*schema["properties"]]
        for name, inner in schema["properties"].items():
            if isinstance(value, dict) and name in value:
                yield from _of_schema(inner, models, value[name], f"{path}.{name}".removeprefix("."), depth - 1)
    elif "items" in schema:
        for place, item in enumerate(value if isinstance(value, list) else [None]):
            yield from _of_schema(schema["items"], models, item, f"{path}[{place}]", depth - 1)


def _resolved(schema: Mapping[str, Any], models: Mapping[str, Any]) -> Mapping[str, Any]:
    """The schema without a reference, and without the alternative that it is null."""
    choices = [one for one in schema.get("anyOf", ()) if one.get("type") != "null"]
    schema = choices[0] if len(choices) == 1 else schema
    name = str(schema.get("$ref", "")).rpartition("/")[2]
    model: Mapping[str, Any] = models.get(name, schema)
    return model
