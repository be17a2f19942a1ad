"""A manifest on its way to the document of a JobSpec: what every kind of manifest has in common."""

import re
from collections.abc import Collection, Mapping
from typing import Any

from hekla.domain import frameworks
from hekla.domain.formats import annotations as words
from hekla.domain.formats.fields import Fields, Findings
from hekla.domain.formats.files import Companions
from hekla.domain.formats.volumes import JobVolumes, MountRequest
from hekla.domain.translation import gettext_noop, translate
from hekla.domain.validation import join, quote

_METADATA = ("creationTimestamp", "resourceVersion", "uid", "generation", "managedFields", "selfLink")
_TENANT = gettext_noop("a job belongs to the tenant that you submit it for.")
_NUMBERS = ("priority", "min_available", "active_deadline_seconds")
_WORDS = {"kind": words.KIND, "description": words.DESCRIPTION, "priority": words.PRIORITY}


class ManifestReader:
    """What stands beside the job in the stream, the findings, and what belongs to the job as a whole: its volumes, its
    secrets, the environment that it names for all its tasks, and what all of them mount.
    """

    def __init__(self, companions: Companions, findings: Findings) -> None:
        self.companions, self.findings = companions, findings
        self.volumes = JobVolumes(findings, companions.claims)
        self.environment: object = None
        self.mounts: list[MountRequest] = []
        self.secrets: dict[str, str] = {}

    def take(self, fields: Fields, name: str, target: str, *, zero_is_default: bool = False) -> Any:  # noqa: ANN401
        """A field's value as it stands, with its path remembered for what a JobSpec may say about it."""
        self.findings.origins[target] = fields.at(name)
        value = fields.take(name)
        return None if zero_is_default and value == 0 and not isinstance(value, bool) else value

    def head(self, metadata: Fields, **more: str) -> dict[str, Any]:
        """What a job's metadata say. `more` names the annotations in which this kind says a further JobSpec field."""
        annotations = metadata.mapping("annotations")
        document = {
            "name": self.take(metadata, "name", "name"),
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
        """Report what else stands in the metadata of a job or a pod, and the annotations that are left.

        `elsewhere` says to what it belongs, if not to a namespace.
        """
        if metadata.take("namespace"):
            self.findings.not_honoured(metadata.at("namespace"), translate(elsewhere))
        metadata.ignore(*_METADATA)
        metadata.close()
        for name in annotations:
            self.findings.not_honoured(f"{metadata.at('annotations')}.{name}")

    def unless(self, owner: Fields, name: str, fitting: Collection[object], why: str) -> None:
        """Report a field that has no effect here, unless what it asks for is what happens anyway."""
        value = owner.take(name)
        if value not in (None, "", *fitting):
            self.findings.not_honoured(owner.at(name), why)

    def plugin(self, name: str, arguments: Mapping[str, str], path: str) -> dict[str, list[str]]:
        """The job plugin that tells pods about one another; arguments that only say its defaults are left out."""
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
        """The value of an annotation; a whole number where the field wants one, though annotations are text."""
        text = annotations.pop(name, None)
        self.findings.origins[field] = path = f"{metadata.at('annotations')}.{name}"
        if text is None or field not in _NUMBERS:
            return text
        if isinstance(text, str) and re.fullmatch(r"-?\d{1,10}", text, re.ASCII):
            return int(text)
        self.findings.problem(path, translate("Must be an integer in quotes, not {given}.", given=quote(text)))
        return None


def without_none(document: dict[str, Any]) -> dict[str, Any]:
    """Without the fields that the manifest leaves to their defaults."""
    return {name: value for name, value in document.items() if value is not None}
