"""Volcano's PodGroup (`scheduling.volcano.sh/v1beta1`): how the pods of the job next to it are placed.

A job's pods name their group in an annotation; with one job and one group in the text, this is optional. As in
Volcano's scheduler, settings of the group take precedence over those of the job.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from hekla.domain.errors import Invalid, Problem
from hekla.domain.formats import annotations as words
from hekla.domain.formats import placement
from hekla.domain.formats.fields import Fields, Findings, wrong_version
from hekla.domain.formats.reader import ManifestReader
from hekla.domain.translation import translate
from hekla.domain.validation import join, quote

API_VERSION, KIND = "scheduling.volcano.sh/v1beta1", "PodGroup"
NAMES = ("scheduling.k8s.io/group-name", "scheduling.volcano.sh/group-name")


def no_job_message() -> str:
    """The message that a group needs a job next to it."""
    return translate(
        "The text has a {kind} without a job. Put both into one text, separated by ---, and set the annotation "
        "{name} on the job's pods.",
        kind=KIND,
        name=NAMES[0],
    )


def no_pod_message() -> str:
    """The message that no job of several names the group."""
    return translate(
        "No pod of a job in this text refers to this {kind} with the annotation {name}.", kind=KIND, name=NAMES[0]
    )


def is_group(document: object) -> bool:
    """Whether a document of a stream is a PodGroup."""
    return isinstance(document, dict) and document.get("kind") == KIND


def groups_of(job: object, groups: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The groups that pods of a job name."""
    names = set(_names(job))
    return [group for group in groups if _name(group) in names]


@dataclass(frozen=True, slots=True)
class PodGroupManifest:
    """The group of a job's pods."""

    fields: Fields

    def apply(self, reading: ManifestReader, document: dict[str, Any]) -> None:
        """Apply the group's settings to a job's document; report those without effect."""
        self.fields.ignore("apiVersion", "kind", "status")
        metadata, spec = self.fields.fields("metadata"), self.fields.fields("spec")
        metadata.ignore("name")
        annotations = metadata.mapping("annotations")
        theirs = {name: annotations.pop(name) for name in words.SCHEDULING if name in annotations}
        document["annotations"] = theirs | (document.get("annotations") or {})
        reading.close_metadata(metadata, annotations)
        _say(reading, document, "queue", spec, "queue")
        _say(reading, document, "min_available", spec, "minMember")
        _say_of_tasks(reading, document, spec.fields("minTaskMember"))
        _say(reading, document, "priority_class", spec, "priorityClassName")
        _say_topology(reading, document, spec)
        if needs := spec.mapping("minResources"):
            reading.findings.origins["min_resources"] = spec.at("minResources")
            document["min_resources"] = needs
        spec.close()
        self.fields.close()


def select_group(job: dict[str, Any], groups: Sequence[dict[str, Any]], findings: Findings) -> PodGroupManifest | None:
    """The group of the only job of a stream, if it has one. Other groups are reported. Raises Invalid."""
    named = groups_of(job, groups)
    if len(named) > 1:
        message = translate(
            "The job's pods are in the groups {names}. A job has exactly one group. Use one group, or several jobs.",
            names=translate(" and ").join(_name(group) for group in named),
        )
        raise Invalid([Problem(KIND, message)])
    found = named or (list(groups) if len(groups) == 1 and not any(_names(job)) else [])
    for group in groups:
        if not any(group is one for one in found):
            why = translate("no pod of the job refers to it with the annotation {name}.", name=NAMES[0])
            findings.not_honoured(_path(group), why)
    if not found:
        return None
    if found[0].get("apiVersion") != API_VERSION:
        message = wrong_version(KIND, API_VERSION, found[0].get("apiVersion"))
        findings.problem(join(_path(found[0]), "apiVersion"), message)
    return PodGroupManifest(Fields(found[0], _path(found[0]), findings))


def without_name(data: Any, group: PodGroupManifest) -> Any:  # noqa: ANN401  (whatever the YAML holds)
    """A job without the annotations that name its group, which are no longer needed."""
    if isinstance(data, list):
        return [without_name(one, group) for one in data]
    if not isinstance(data, dict):
        return data
    name = group.fields.fields("metadata").take("name")
    return {
        key: {one: text for one, text in value.items() if one not in NAMES or text != name}
        if key == "annotations" and isinstance(value, dict)
        else without_name(value, group)
        for key, value in data.items()
    }


def _say(reading: ManifestReader, document: dict[str, Any], field: str, spec: Fields, name: str) -> None:
    before, place = document.get(field), reading.findings.place_of(field)
    value = spec.take(name)
    if value in (None, "") or (value == 0 and not isinstance(value, bool)):
        return
    document[field] = reading.take(spec, name, field)
    if before not in (None, 1, document[field]):
        why = translate("the {kind} of the pods sets {value}.", kind=KIND, value=quote(document[field]))
        reading.findings.not_honoured(place, why)


def _say_topology(reading: ManifestReader, document: dict[str, Any], spec: Fields) -> None:
    before, place = document.get("network_topology"), reading.findings.place_of("network_topology")
    if (topology := placement.read_network_topology(spec, "network_topology")) is None:
        return
    document["network_topology"] = topology
    if before is not None and before != topology:
        why = translate("the {kind} of the pods sets another network topology.", kind=KIND)
        reading.findings.not_honoured(place, why)


def _say_of_tasks(reading: ManifestReader, document: dict[str, Any], least: Fields) -> None:
    tasks = {str(task.get("name")): (place, task) for place, task in enumerate(document["tasks"])}
    for name in least.names():
        if name in tasks:
            place, task = tasks[name]
            task["min_available"] = reading.take(least, name, join("tasks", place, "min_available"))
        else:
            least.ignore(name)
            reading.findings.not_honoured(least.at(name), translate("the job does not have this task."))
    least.close()


def _names(data: object) -> Iterator[str]:
    """The groups that pods name, anywhere in a job."""
    if isinstance(data, list):
        for one in data:
            yield from _names(one)
    elif isinstance(data, dict):
        for key, value in data.items():
            if key == "annotations" and isinstance(value, dict):
                yield from (value[name] for name in NAMES if isinstance(value.get(name), str))
            else:
                yield from _names(value)


def _name(group: dict[str, Any]) -> str:
    metadata = group.get("metadata")
    return str(metadata.get("name") or "") if isinstance(metadata, dict) else ""


def _path(group: dict[str, Any]) -> str:
    return f"{KIND} {_name(group)}".strip()
