"""From a manifest to the document of a JobSpec: what every kind of manifest has in common."""

import hashlib
import re
import secrets
from collections.abc import Collection, Mapping
from typing import Any

from hekla.domain import frameworks
from hekla.domain.formats import annotations as words
from hekla.domain.formats.fields import Fields, Findings
from hekla.domain.formats.files import Companions
from hekla.domain.formats.volumes import JobVolumes, MountRequest
from hekla.domain.jobspec import MAX_JOB_NAME
from hekla.domain.translation import gettext_noop, translate
from hekla.domain.validation import join, quote

_METADATA = ("creationTimestamp", "resourceVersion", "uid", "generation", "managedFields", "selfLink")
_TENANT = gettext_noop("a job belongs to the tenant that you submit it for.")
_SUFFIX, _LETTERS = 5, "bcdfghjklmnpqrstvwxz2456789"
"""The suffix of generated names: Kubernetes' letters and digits, which form no words."""
_NUMBERS = (
    *("priority", "min_available", "active_deadline_seconds", "keep_failed_seconds"),
    *("idle_after_seconds", "idle_grace_seconds"),
)
_WORDS = {
    "kind": words.KIND,
    "description": words.DESCRIPTION,
    "priority": words.PRIORITY,
    "keep_failed_seconds": words.KEEP_FAILED,
    "idle_after_seconds": words.IDLE_AFTER,
    "idle_grace_seconds": words.IDLE_GRACE,
}


class ManifestReader:
    """The companions in the stream, the findings, and settings of the whole job: its volumes, its secrets, the default
    environment of its tasks, and the mounts of all tasks. With a seed, a generated name is always the same.
    """

    def __init__(self, companions: Companions, findings: Findings, seed: str = "") -> None:
        self.companions, self.findings, self._seed = companions, findings, seed
        self.volumes = JobVolumes(findings, companions.claims)
        self.environment: object = None
        self.mounts: list[MountRequest] = []
        self.secrets: dict[str, str] = {}

    def take(self, fields: Fields, name: str, target: str, *, zero_is_default: bool = False) -> Any:  # noqa: ANN401
        """The raw value of a field. Records its path, for problems of the JobSpec at `target`."""
        self.findings.origins[target] = fields.at(name)
        value = fields.take(name)
        return None if zero_is_default and value == 0 and not isinstance(value, bool) else value

    def name(self, metadata: Fields, longest: int) -> Any:  # noqa: ANN401  (the spec judges it)
        """The name, or one made from `generateName`, as Kubernetes makes it: the beginning, and a random suffix."""
        name, prefix = self.take(metadata, "name", "name"), metadata.text("generateName")
        if name is not None or not prefix:
            return name
        self.findings.origins["name"] = metadata.at("generateName")
        numbers = hashlib.sha256(self._seed.encode()).digest() if self._seed else secrets.token_bytes(_SUFFIX)
        suffix = "".join(_LETTERS[number % len(_LETTERS)] for number in numbers[:_SUFFIX])
        return prefix[: longest - _SUFFIX] + suffix

    def head(self, metadata: Fields, **more: str) -> dict[str, Any]:
        """The JobSpec fields in a job's metadata. `more`: the annotations of this kind for further JobSpec fields."""
        annotations = metadata.mapping("annotations")
        document = {
            "name": self.name(metadata, MAX_JOB_NAME),
            "annotations": {name: annotations.pop(name) for name in words.SCHEDULING if name in annotations},
            **{
                field: self._annotation_value(metadata, annotations, field, name)
                for field, name in (_WORDS | more).items()
            },
        }
        self.findings.origins["annotations"] = metadata.at("annotations")
        self.environment = annotations.pop(words.ENVIRONMENT, None)
        self.close_metadata(metadata, annotations)
        return document

    def close_metadata(self, metadata: Fields, annotations: dict[str, Any], elsewhere: str = _TENANT) -> None:
        """Report the unread fields in the metadata of a job or a pod, and the remaining annotations.

        `elsewhere`: why a namespace has no effect.
        """
        if metadata.take("namespace"):
            self.findings.not_honoured(metadata.at("namespace"), translate(elsewhere))
        metadata.ignore(*_METADATA)
        metadata.close()
        for name in annotations:
            self.findings.not_honoured(f"{metadata.at('annotations')}.{name}")

    def unless(self, owner: Fields, name: str, fitting: Collection[object], why: str) -> None:
        """Report a field without effect, unless its value is empty or requests what happens anyway (`fitting`)."""
        value = owner.take(name)
        if value not in (None, "", *fitting):
            self.findings.not_honoured(owner.at(name), why)

    def plugin(self, name: str, arguments: Mapping[str, str], path: str) -> dict[str, list[str]]:
        """The job plugin that connects the pods, with its arguments; default values are left out."""
        framework = frameworks.load_frameworks().get(name)
        if framework is None:
            why = translate("unknown job plugin {name}, so pods get no information about each other.", name=name)
            self.findings.not_honoured(path, why)
            return {}
        self.findings.origins[join("plugins", name)] = path
        usual = {option.name: str(option.default) for option in framework.options}
        words = [f"--{option}={value}" for option, value in arguments.items() if usual.get(option, value) != value]
        return {name: words}

    def _annotation_value(self, metadata: Fields, annotations: dict[str, Any], field: str, name: str) -> object:
        """The value of an annotation; an integer for number fields, since annotations are text."""
        text = annotations.pop(name, None)
        self.findings.origins[field] = path = f"{metadata.at('annotations')}.{name}"
        if text is None or field not in _NUMBERS:
            return text
        if isinstance(text, str) and re.fullmatch(r"-?\d{1,10}", text, re.ASCII):
            return int(text)
        self.findings.problem(path, translate("Must be an integer in quotes, not {given}.", given=quote(text)))
        return None


def without_none(document: dict[str, Any]) -> dict[str, Any]:
    """The fields without None, which the manifest leaves to their defaults."""
    return {name: value for name, value in document.items() if value is not None}
