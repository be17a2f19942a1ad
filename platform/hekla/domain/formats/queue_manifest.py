"""Reads and writes Volcano's Queue (`scheduling.volcano.sh/v1beta1`).

Annotations hold what it has no field for: `hekla.io/cluster`, `hekla.io/description`, and `hekla.io/tenants`, the
tenants that may submit, separated by commas. `hekla.io/allow-unknown-resources: "true"` accepts resources that no node
has yet. `hekla.io/job-order` is the order of its pending jobs; Volcano's own annotations give its place in the
hierarchy, its limits in node groups, and its card limits by model. A queue is closed if its status is `Closed`, and
draining if `Closing`.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hekla.domain import queue_settings, yaml_text
from hekla.domain.errors import Invalid, Problem
from hekla.domain.formats import annotations as words
from hekla.domain.formats.fields import Fields, Findings, not_one, wrong_version
from hekla.domain.formats.files import Companions
from hekla.domain.formats.reader import ManifestReader, without_none
from hekla.domain.formats.writing import without_empty
from hekla.domain.translation import gettext_noop, translate
from hekla.domain.validation import quote

API_VERSION, KIND = "scheduling.volcano.sh/v1beta1", "Queue"
CLUSTER, TENANTS = "hekla.io/cluster", "hekla.io/tenants"
ALLOW_UNKNOWN = "hekla.io/allow-unknown-resources"

_FIELDS = ("weight", "priority", "capability", "deserved", "reclaimable", "parent")
_STATES = {"Closing": "draining", "Closed": "closed"}
"""The states that a manifest can set; the default is open."""
_JSON = {"node_group_limits": '{"a100": {"cpu": "4"}}', "card_quota": '{"NVIDIA-A100": 8}'}
"""The fields that annotations write as JSON, each with an example."""
_NO_NAMESPACE = gettext_noop("a queue belongs to a cluster.")
_NO_ORDER = gettext_noop("a job that does not fit does not block the jobs behind it.")


@dataclass(frozen=True, slots=True)
class LoadedQueue:
    """The queue in a manifest, as REST accepts it, and a sentence for everything that has no effect here."""

    document: dict[str, Any]
    warnings: tuple[str, ...]
    findings: Findings

    def placed(self, clusters: Sequence[str]) -> dict[str, Any]:
        """The document with its cluster: the one in the manifest, else the only one. Raises Invalid."""
        if "cluster" in self.document:
            return self.document
        if len(clusters) == 1:
            return {**self.document, "cluster": clusters[0]}
        message = translate("Name the cluster of the queue. No cluster exists yet.")
        if clusters:
            names = ", ".join(clusters)
            message = translate("Name the cluster of the queue. Available: {names}.", names=names)
        raise Invalid([Problem(self.findings.place_of("cluster"), message)])


def holds_queues(documents: Sequence[Any]) -> bool:
    """Whether a stream has queues and nothing else."""
    return bool(documents) and all(_is_queue(document) for document in documents)


def load_queue(text: str | bytes) -> LoadedQueue:
    """The queue in a YAML (or JSON) stream. Raises Invalid with every problem and its path in the manifest."""
    findings = Findings()
    queue = Fields(_sorted_out(yaml_text.read(text), findings), "", findings)
    queue.ignore("apiVersion", "kind")
    reading = ManifestReader(Companions(findings), findings)
    document = {**_metadata(reading, queue.fields("metadata")), **_spec(reading, queue.fields("spec"))}
    document["state"] = _STATES.get(str(queue.fields("status").take("state")))
    queue.close()
    findings.raise_any()
    return LoadedQueue(without_none(document), findings.warnings(), findings)


def dump_queue(document: Mapping[str, Any]) -> str:
    """The manifest of a queue, from its REST document."""
    annotations = {
        CLUSTER: document.get("cluster"),
        words.DESCRIPTION: document.get("description") or None,
        TENANTS: ", ".join(document.get("tenants", ())) or None,
        **queue_settings.annotations(document),
    }
    fields = {name: document.get(name) for name in _FIELDS} | {"priority": document.get("priority") or None}
    affinity = without_empty(**queue_settings.affinity(document))
    manifest = {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": without_empty(name=document["name"], annotations=without_empty(**annotations)),
        "spec": without_empty(**fields, guarantee=without_empty(resource=document.get("guarantee")), affinity=affinity),
        "status": without_empty(
            state=next((word for word, state in _STATES.items() if state == document.get("state")), None)
        ),
    }
    return yaml_text.write([without_empty(**manifest)])


def _metadata(reading: ManifestReader, metadata: Fields) -> dict[str, Any]:
    annotations = metadata.mapping("annotations")
    names = {
        "cluster": CLUSTER,
        "description": words.DESCRIPTION,
        "tenants": TENANTS,
        "allow_unknown_resources": ALLOW_UNKNOWN,
        **queue_settings.OF_ANNOTATIONS,
    }
    for field, name in names.items():
        reading.findings.origins[field] = f"{metadata.at('annotations')}.{name}"
    document = {field: annotations.pop(name, None) for field, name in names.items()}
    document["tenants"] = _listed(reading, document["tenants"])
    for field, example in _JSON.items():
        document[field] = _parsed(reading, field, document[field], example)
    document["name"] = reading.take(metadata, "name", "name")
    reading.close_metadata(metadata, annotations, _NO_NAMESPACE)
    return document


def _listed(reading: ManifestReader, names: object) -> list[str] | None:
    if names is None or isinstance(names, str):
        return [name.strip() for name in names.split(",") if name.strip()] if names else None
    message = translate("Name the tenants in one string, separated by commas, not {given}.", given=quote(names))
    reading.findings.problem(reading.findings.place_of("tenants"), message)
    return None


def _parsed(reading: ManifestReader, field: str, text: object, example: str) -> Any:  # noqa: ANN401  (the serializer judges it)
    """The value of a field that its annotation writes as JSON."""
    try:
        return json.loads(text) if isinstance(text, str) and text else text or None
    except (ValueError, RecursionError):
        message = translate("Must be a JSON object such as {example}.", example=example)
        reading.findings.problem(reading.findings.place_of(field), message)
        return None


def _affinity(reading: ManifestReader, affinity: Fields) -> dict[str, Any]:
    """The lists of node groups."""
    sides = {side: affinity.fields(side) for side, _strength in queue_settings.AFFINITY.values()}
    found = {
        field: reading.take(sides[side], strength, field) for field, (side, strength) in queue_settings.AFFINITY.items()
    }
    for fields in (affinity, *sides.values()):
        fields.close()
    return found


def _spec(reading: ManifestReader, spec: Fields) -> dict[str, Any]:
    document = {name: reading.take(spec, name, name) for name in _FIELDS}
    guarantee = spec.fields("guarantee")
    document["guarantee"] = reading.take(guarantee, "resource", "guarantee")
    guarantee.close()
    document |= _affinity(reading, spec.fields("affinity"))
    if document["parent"] in ("", queue_settings.ROOT):
        document["parent"] = None
    reading.unless(spec, "dequeueStrategy", ("traverse",), translate(_NO_ORDER))
    spec.close()
    return document


def _sorted_out(documents: list[Any], findings: Findings) -> dict[str, Any]:
    """The only queue of a stream. Raises Invalid without exactly one."""
    found = [document for document in documents if _is_queue(document)]
    for number, document in enumerate(documents, start=1):
        if not _is_queue(document):
            kind = document.get("kind") if isinstance(document, dict) else document
            why = translate("{given} is not a {kind}. Submit it separately.", given=quote(kind), kind=KIND)
            findings.not_honoured(f"document {number}", why)
    if len(found) != 1:
        raise Invalid([Problem("", not_one(len(found), KIND, API_VERSION))])
    queue: dict[str, Any] = found[0]
    if queue.get("apiVersion") != API_VERSION:
        raise Invalid([Problem("apiVersion", wrong_version(KIND, API_VERSION, queue.get("apiVersion")))])
    return queue


def _is_queue(document: object) -> bool:
    return isinstance(document, dict) and document.get("kind") == KIND
