"""What a format is made of."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from hekla.domain.formats.fields import Fields
from hekla.domain.formats.reader import ManifestReader
from hekla.domain.jobspec import JobSpec


@dataclass(frozen=True, slots=True)
class LoadedJob:
    """The job that a manifest describes, and a sentence for everything in it that has no effect here.

    `secrets` are values that its commands speak of, which are no part of the job (`domain.secrets`). `mounted` are the
    names of the claims beside it that are made for it.
    """

    spec: JobSpec
    warnings: tuple[str, ...]
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)
    mounted: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Format:
    """One kind of manifest, told by `api_version` and `kind`; `word` names it in a command.

    `read` makes the JSON-like document of a JobSpec and leaves the judging of its values to `JobSpec.parse`. `write`
    makes the manifest's object, and raises Invalid where the kind cannot hold the job at all. `mounts_files` says
    whether its pods can mount a ConfigMap with the job's files. `recognise` tells manifests that say what they are
    otherwise than by `apiVersion` and `kind`.
    """

    word: str
    api_version: str
    kind: str
    read: Callable[[ManifestReader, Fields], dict[str, Any]]
    write: Callable[[JobSpec], dict[str, Any]]
    mounts_files: bool = True
    recognise: Callable[[Mapping[str, Any]], bool] | None = None

    @property
    def version(self) -> str:
        """The version as people read it."""
        return f"OpenPAI, version {self.api_version}" if self.recognise else self.api_version
