"""Reads from pod templates where pods may run. The models in `domain.placement` define the fields."""

from collections.abc import Iterator
from typing import Any, get_origin

from pydantic import BaseModel
from pydantic.alias_generators import to_camel

from hekla.domain.formats.fields import Fields
from hekla.domain.model_errors import model_in
from hekla.domain.network_topology import NetworkTopologySpec
from hekla.domain.placement import RESERVED_LABELS, PodAffinityTermSpec, is_reserved
from hekla.domain.task_spec import TaskSpec
from hekla.domain.translation import translate
from hekla.domain.validation import join

_FIELDS = ("tolerations", "affinity", "topology_spread_constraints")
_TOPOLOGY = "networkTopology"
Document = dict[str, Any]


def read(pod: Fields, target: str) -> Document:
    """The fields of the task at `target`; absent ones are left out."""
    return dict(_values(pod, target, TaskSpec, _FIELDS))


def read_network_topology(owner: Fields, target: str) -> Document | None:
    """The network topology at `target`; None if there is none."""
    owner.findings.origins[target] = owner.at(_TOPOLOGY)
    if _TOPOLOGY not in owner:
        owner.ignore(_TOPOLOGY)
        return None
    return _document(owner.fields(_TOPOLOGY), target, NetworkTopologySpec)


def read_labels(metadata: Fields, target: str) -> dict[str, Any]:
    """The labels of the task's pods, without the reserved ones."""
    findings, labels = metadata.findings, metadata.mapping("labels")
    why = translate("names that begin with {prefixes} are reserved.", prefixes=", ".join(RESERVED_LABELS))
    for name in labels:
        path = findings.origins[join(target, name)] = f"{metadata.at('labels')}.{name}"
        if is_reserved(name):
            findings.not_honoured(path, why)
    findings.origins[target] = metadata.at("labels")
    return {name: value for name, value in labels.items() if not is_reserved(name)}


def _values(
    owner: Fields, target: str, model: type[BaseModel], names: tuple[str, ...] = ()
) -> Iterator[tuple[str, object]]:
    """The fields of the model in Kubernetes' spelling, as (name, value). Empty texts count as absent."""
    for name in names or model.model_fields:
        annotation, wire, at = model.model_fields[name].annotation, to_camel(name), join(target, name)
        owner.findings.origins[at] = owner.at(wire)
        inner = model_in(annotation)
        if wire not in owner:
            owner.ignore(wire)
        elif inner is None:
            if (value := owner.take(wire)) != "":
                yield name, value
        elif get_origin(annotation) is tuple:
            items = enumerate(owner.list_of_fields(wire))
            yield name, [_document(item, join(at, place), inner) for place, item in items]
        else:
            yield name, _document(owner.fields(wire), at, inner)


def _document(fields: Fields, target: str, model: type[BaseModel]) -> Document:
    document = dict(_values(fields, target, model))
    if model is PodAffinityTermSpec:
        _report_namespaces(fields)
    fields.close()
    return document


def _report_namespaces(term: Fields) -> None:
    why = translate("a term selects pods of the own tenant only.")
    if term.sequence("namespaces"):
        term.findings.not_honoured(term.at("namespaces"), why)
    if "namespaceSelector" in term:  # an empty one means all namespaces
        term.findings.not_honoured(term.at("namespaceSelector"), why)
    term.ignore("namespaceSelector")
