"""The parts of a manifest format."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from hekla.domain.errors import Invalid, Problem
from hekla.domain.formats.fields import Fields
from hekla.domain.formats.reader import ManifestReader
from hekla.domain.jobspec import JobSpec
from hekla.domain.translation import translate


@dataclass(frozen=True, slots=True)
class LoadedJob:
    """The job in a manifest, and a sentence for everything in it that has no effect here.

    `secrets`: values that its commands refer to; they are not part of the job (`domain.secrets`). `mounted`: the names
    of the claims in the stream that are created for the job.
    """

    spec: JobSpec
    warnings: tuple[str, ...]
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)
    mounted: frozenset[str] = frozenset()


def _refuse(_spec: JobSpec) -> dict[str, Any]:
    raise Invalid([Problem("kind", translate("Jobs cannot be written as this kind. It is only read."))])


@dataclass(frozen=True, slots=True)
class Format:
    """One kind of manifest, identified by `api_version` and `kind`; `word` is its name in commands.

    `read` returns the document of a JobSpec; `JobSpec.parse` validates its values. `write` returns the manifest's
    object, and raises Invalid if the kind cannot hold the job at all; without it, the kind is only read.
    `mounts_files`: whether its pods can mount a ConfigMap with the job's files. `recognise`: identifies manifests that
    have no `apiVersion` and `kind`.
    """

    word: str
    api_version: str
    kind: str
    read: Callable[[ManifestReader, Fields], dict[str, Any]]
    write: Callable[[JobSpec], dict[str, Any]] = _refuse
    mounts_files: bool = True
    recognise: Callable[[Mapping[str, Any]], bool] | None = None

    @property
    def is_writable(self) -> bool:
        """Whether jobs can be written as this kind."""
        return self.write is not _refuse

    @property
    def version(self) -> str:
        """The version as users read it."""
        return f"OpenPAI, version {self.api_version}" if self.recognise else self.api_version
