"""A manifest as an editor needs it: the line of each problem, and the fields that its reader knows at each place."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from hekla.domain import yaml_text
from hekla.domain.errors import Invalid, Problem
from hekla.domain.formats import manifests, registry
from hekla.domain.formats.base import LoadedJob
from hekla.domain.formats.fields import Findings
from hekla.domain.jobspec import JobSpec
from hekla.domain.policies import POLICY_ACTIONS, POLICY_EVENTS
from hekla.domain.yaml_lines import YamlLines

_MOST_DEPTH = 12


@dataclass(frozen=True, slots=True)
class Inspection:
    """What is in the text. `loaded`: None if it has problems; the paths of these are in the text.

    `fields`: by path, such as `spec.tasks[0]`, the names of the fields that may be there. Of a text that is not YAML,
    those of the text without the line at the mistake: a name is half typed there. If that is no YAML either, none.
    """

    loaded: LoadedJob | None
    problems: tuple[Problem, ...]
    fields: Mapping[str, Sequence[str]]
    _findings: Findings
    _lines: YamlLines

    def line_of(self, path: str) -> int:
        """The line, from 1, of a path in the text."""
        return self._lines.line_of(path)

    def line_of_part(self, path: str) -> int:
        """The line of a part of the JobSpec, by its path in the JobSpec."""
        return self._lines.line_of(self._findings.place_of(path))


def inspect(text: str) -> Inspection:
    """Everything that can be said about a manifest of any kind, valid or not."""
    findings, lines = Findings(), YamlLines(text)
    try:
        documents = yaml_text.read(text)
    except Invalid as error:
        return Inspection(None, error.problems, _fields_beside(text, lines.line_of("")), findings, lines)
    loaded, problems = None, ()
    try:
        loaded = manifests.load_documents(documents, findings=findings)
    except Invalid as error:
        problems = error.problems
    return Inspection(loaded, problems, _fields(documents, findings), findings, lines)


def values() -> dict[str, Sequence[str]]:
    """By the name of a field, the values that it can have, for fields with a fixed list of values."""
    actions, events = [*map(str, POLICY_ACTIONS)], [*map(str, POLICY_EVENTS)]
    kinds = list(dict.fromkeys(form.kind for form in registry.FORMATS if not form.recognise))
    versions = list(dict.fromkeys(form.api_version for form in registry.FORMATS if not form.recognise))
    return {"action": actions, "event": events, "events": events, "kind": kinds, "apiVersion": versions}


def _fields_beside(text: str, mistake: int) -> Mapping[str, Sequence[str]]:
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
            manifests.load_documents(documents, findings=findings)
        return _fields(documents, findings)
    return {}


def _fields(documents: Sequence[Any], findings: Findings) -> dict[str, Sequence[str]]:
    found = {path: sorted(set().union(*names)) for path, names in findings.known.items()}
    if not found and all(isinstance(document, dict) for document in documents[:1]):
        schema = JobSpec.model_json_schema()
        found = dict(_of_schema(schema, schema["$defs"], documents[0] if documents else {}, ""))
        found[""] = [*found[""], *(["apiVersion", "kind"] if not documents else [])]
    return found


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
    return models.get(name, schema)
