"""Reads and writes Volcano's JobTemplate and JobFlow (`flow.volcano.sh/v1alpha1`).

A template holds the spec of a Volcano Job. A step of a flow has the name of its template, or names it in its field
`template`. This field and `metadata` in a patch are Hekla's additions. An inline job of a step is written as a
template.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from hekla.domain import yaml_text
from hekla.domain.errors import HeklaError, Invalid, Problem
from hekla.domain.flows import FlowSpec, Probe, Retain, StepSpec
from hekla.domain.formats import manifests
from hekla.domain.formats.base import LoadedJob
from hekla.domain.formats.fields import Fields, Findings, wrong_version
from hekla.domain.formats.files import Companions, is_companion, report_unmounted
from hekla.domain.formats.manifests import FLOW_KINDS
from hekla.domain.formats.reader import ManifestReader, without_none
from hekla.domain.formats.volcano import VOLCANO
from hekla.domain.formats.writing import without_empty
from hekla.domain.jobspec import JobSpec
from hekla.domain.translation import translate
from hekla.domain.validation import join, quote

VERSION = "flow.volcano.sh/v1alpha1"
_TEMPLATE, _FLOW = FLOW_KINDS
_STATES = {"completed": "succeeded"}


@dataclass(frozen=True, slots=True)
class LoadedFlow:
    """The templates and the flow (if any) of a stream, and a sentence for everything that has no effect."""

    templates: tuple[JobSpec, ...]
    flow: FlowSpec | None
    warnings: tuple[str, ...]
    findings: Findings

    def translate_paths(self, error: HeklaError) -> HeklaError:
        """An error about the flow, with its paths in the manifest."""
        return self.findings.translate_paths(error)


def holds_flows(documents: Sequence[Any]) -> bool:
    """Whether a stream has templates or flows."""
    return any(isinstance(document, dict) and document.get("kind") in FLOW_KINDS for document in documents)


def load_flow(text: str | bytes) -> LoadedFlow:
    """The templates and the flow in a YAML (or JSON) stream. Raises Invalid with every problem and its path in it."""
    return load_flow_documents(yaml_text.read(text), Findings())


def load_flow_documents(documents: list[Any], findings: Findings) -> LoadedFlow:
    """The same for the documents of a stream. `findings`: to read them afterwards. Raises Invalid as `load_flow`."""
    templates, flows, maps = _sorted_out(documents, findings)
    loaded = [one for template in templates if (one := _template(template, maps, findings))]
    report_unmounted(maps, frozenset[str]().union(*(one.mounted for one in loaded)), findings)
    specs = [one.spec for one in loaded]
    repeated = {spec.name for spec in specs if [other.name for other in specs].count(spec.name) > 1}
    for name in sorted(repeated):
        findings.problem(f"{_TEMPLATE} {name}", translate("The text has two templates with this name."))
    flow = _flow(flows[0], findings) if flows else None
    findings.raise_any()
    return LoadedFlow(tuple(specs), flow, findings.warnings(), findings)


def dump_template(spec: JobSpec) -> str:
    """A template as a manifest."""
    return yaml_text.write(_written_template(spec))


def dump_flow(flow: FlowSpec, templates: Sequence[JobSpec] = ()) -> str:
    """A flow as a manifest, after the given templates and templates for its inline jobs."""
    own = [
        step.job.model_copy(update={"name": flow.job_name(step.name)}) for step in flow.steps if step.job is not None
    ]
    streams = [document for spec in (*templates, *own) for document in _written_template(spec)]
    return yaml_text.write([*streams, _written_flow(flow)])


def _sorted_out(documents: list[Any], findings: Findings) -> tuple[list[Any], list[Any], list[Any]]:
    """The templates, flows and companions of a stream. Raises Invalid without a template or flow, or with several
    flows.
    """
    found: dict[str, list[Any]] = {_TEMPLATE: [], _FLOW: []}
    beside: list[Any] = []
    for number, document in enumerate(documents, start=1):
        kind = document.get("kind") if isinstance(document, dict) else None
        if is_companion(document):
            beside.append(document)
        elif isinstance(kind, str) and kind in found:
            found[kind].append(document)
            _check_version(document, findings)
        else:
            what = quote(kind) if kind else translate("content that is not a manifest")
            message = translate("{what} is neither a template nor a flow. Submit it separately.", what=what)
            findings.not_honoured(f"document {number}", message)
    if len(found[_FLOW]) > 1 or not (found[_FLOW] or found[_TEMPLATE]):
        raise Invalid([Problem("", _not_expected(len(found[_FLOW])))])
    return found[_TEMPLATE], found[_FLOW], beside


def _not_expected(flows: int) -> str:
    values = {"flow": _FLOW, "template": _TEMPLATE, "version": VERSION}
    if not flows:
        return translate("The text has no flow. Required: one {flow}, {template}s, or both, of {version}.", **values)
    return translate(
        "The text has {count} flows. Required: one {flow}, {template}s, or both, of {version}.",
        count=flows,
        **values,
    )


def _check_version(document: dict[str, Any], findings: Findings) -> None:
    kind, version = document["kind"], document.get("apiVersion")
    if kind in FLOW_KINDS and version != VERSION:
        findings.problem("apiVersion", wrong_version(kind, VERSION, version))


def _template(document: dict[str, Any], maps: list[Any], findings: Findings) -> LoadedJob | None:
    """The job of a template: its spec is that of a Volcano Job."""
    fields = Fields(document, "", findings)
    where = f"{_TEMPLATE} {fields.fields('metadata').text('name')}".strip()
    job = {**document, "apiVersion": VOLCANO.api_version, "kind": VOLCANO.kind}
    try:
        loaded = manifests.load_beside([*maps, job])
    except Invalid as error:
        findings.problems += [Problem(join(where, problem.path), problem.message) for problem in error.problems]
        return None
    findings.ignored += [f"{where}.{warning}" for warning in loaded.warnings]
    return loaded


def _flow(document: dict[str, Any], findings: Findings) -> FlowSpec | None:
    flow = Fields(document, "", findings)
    flow.ignore("apiVersion", "kind", "status")
    metadata, spec = flow.fields("metadata"), flow.fields("spec")
    findings.origins |= {"name": "metadata.name", "retain": "spec.jobRetainPolicy", "steps": "spec.flows"}
    steps = [_step(step, join("steps", place), findings) for place, step in enumerate(spec.list_of_fields("flows"))]
    fields = {"name": metadata.take("name"), "retain": spec.take("jobRetainPolicy") or None, "steps": steps}
    ManifestReader(Companions(findings), findings).close_metadata(metadata, metadata.mapping("annotations"))
    spec.close()
    flow.close()
    try:
        return FlowSpec.parse(without_none(fields))
    except Invalid as error:
        translated = [Problem(findings.place_of(problem.path), problem.message) for problem in error.problems]
        findings.problems += [problem for problem in translated if problem not in findings.problems]
        return None


def _step(step: Fields, target: str, findings: Findings) -> dict[str, Any]:
    depends, patch = step.fields("dependsOn"), step.fields("patch")
    probe = depends.fields("probe")
    findings.origins |= {
        target: step.path,
        join(target, "depends_on"): depends.at("targets"),
        join(target, "probes"): probe.path,
        join(target, "patch"): patch.path,
        join(target, "patch.spec"): patch.at("jobSpec"),
    }
    document = {
        "name": step.take("name"),
        "template": step.take("template"),
        "depends_on": depends.take("targets"),
        "probes": list(_probes(probe, join(target, "probes"), findings)),
        "patch": without_none({"spec": patch.take("jobSpec"), "metadata": patch.take("metadata")}),
    }
    for fields in (probe, depends, patch, step):
        fields.close()
    return without_none(document)


def _probes(probe: Fields, target: str, findings: Findings) -> Iterator[dict[str, Any]]:
    """The three lists of probes in a manifest as one list."""
    entries = [
        *((entry, _state) for entry in probe.list_of_fields("taskStatusList")),
        *((entry, _port) for entry in probe.list_of_fields("tcpSocketList")),
        *((entry, _question) for entry in probe.list_of_fields("httpGetList")),
    ]
    for place, (entry, read) in enumerate(entries):
        here = join(target, place)
        findings.origins |= {here: entry.path, join(here, "task"): entry.at("taskName")}
        findings.origins[join(here, "state")] = entry.at("phase")
        findings.origins[join(here, "headers")] = entry.at("httpHeader")
        yield without_none({"task": entry.take("taskName"), **read(entry)})
        entry.close()


def _state(entry: Fields) -> dict[str, Any]:
    phase = entry.text("phase").lower()
    return {"state": _STATES.get(phase, phase)}


def _port(entry: Fields) -> dict[str, Any]:
    return {"port": entry.take("port")}


def _question(entry: Fields) -> dict[str, Any]:
    header = entry.fields("httpHeader")
    name, value = header.text("name"), header.text("value")
    header.close()
    return {"port": entry.take("port"), "path": entry.take("path") or "/", "headers": {name: value} if name else {}}


def _written_template(spec: JobSpec) -> list[dict[str, Any]]:
    *files, job = manifests.documents(spec)
    return [*files, {**job, "apiVersion": VERSION, "kind": _TEMPLATE}]


def _written_flow(flow: FlowSpec) -> dict[str, Any]:
    steps = [_written_step(step, flow) for step in flow.steps]
    policy = str(flow.retain) if flow.retain is not Retain.RETAIN else None
    return {
        "apiVersion": VERSION,
        "kind": _FLOW,
        "metadata": {"name": flow.name},
        "spec": without_empty(jobRetainPolicy=policy, flows=steps),
    }


def _written_step(step: StepSpec, flow: FlowSpec) -> dict[str, Any]:
    template = step.template_name or flow.job_name(step.name)
    probe = without_empty(
        taskStatusList=[_written_state(probe) for probe in step.probes if probe.state],
        tcpSocketList=[_written_port(probe) for probe in step.probes if probe.port and not probe.path],
        httpGetList=[_written_question(probe) for probe in step.probes if probe.path],
    )
    return without_empty(
        name=step.name,
        template=template if template != step.name else None,
        dependsOn=without_empty(targets=list(step.depends_on), probe=probe),
        patch=without_empty(jobSpec=step.patch.get("spec"), metadata=step.patch.get("metadata")),
    )


def _written_state(probe: Probe) -> dict[str, Any]:
    return without_empty(taskName=probe.task or None, phase=str(probe.state).capitalize())


def _written_port(probe: Probe) -> dict[str, Any]:
    return without_empty(taskName=probe.task or None, port=probe.port)


def _written_question(probe: Probe) -> dict[str, Any]:
    name, value = next(iter(probe.headers.items()), ("", ""))
    header = {"name": name, "value": value} if name else None
    return without_empty(taskName=probe.task or None, port=probe.port, path=probe.path, httpHeader=header)
