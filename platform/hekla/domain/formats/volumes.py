"""Reads and writes the volumes of pod templates and of Volcano Jobs.

A claim that is created for a job is a PersistentVolumeClaim in the same stream with the annotation
`hekla.io/deleted-with-job`. Claims without it are neither created nor deleted.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from hekla.domain.formats import annotations as words
from hekla.domain.formats.fields import Fields, Findings
from hekla.domain.jobspec import JobSpec
from hekla.domain.resources import parse_quantity
from hekla.domain.task_spec import TaskSpec
from hekla.domain.translation import translate
from hekla.domain.validation import join
from hekla.domain.volumes import MAX_VOLUMES, Medium, VolumeClaim, VolumeMount, VolumeSpec, is_mounted

CLAIM = "PersistentVolumeClaim"
Document = dict[str, Any]

_NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")


@dataclass(frozen=True, slots=True)
class MountRequest:
    """A mount in a manifest, before it is known whether the job can have it.

    `name`: the manifest's name of its volume; `volume_at`, `at`, `path_at`: the paths in the manifest of the volume,
    the mount and its mount path; `more`: the other fields of the mount in a JobSpec.
    """

    name: str
    source: Document
    path: object
    volume_at: str
    at: str
    path_at: str
    more: Document = field(default_factory=dict)


class JobVolumes:
    """The volumes of one job. Templates repeat them; equal ones are one volume."""

    def __init__(self, findings: Findings, claims: dict[str, Document]) -> None:
        self._findings, self._claims = findings, claims
        self._found: dict[str, Document] = {}

    def documents(self) -> list[Document]:
        """As in the document of a JobSpec."""
        return [{"name": name, **source} for name, source in self._found.items()]

    def mounted_claims(self) -> frozenset[str]:
        """The names of the claims in the stream that the job mounts."""
        made = [source.get("volume_claim") for source in self._found.values()]
        return frozenset(name for name, one in self._claims.items() if any(one is claim for claim in made))

    def keep(self, wanted: str, source: Document, path: str) -> str | None:
        """Add a volume and return its name in the job: the wanted name, unless another volume has it.

        None: the job has the maximum number of volumes.
        """
        base = wanted if _NAME.fullmatch(wanted) else "volume"
        names = (base, *(f"{base[:58]}-{number}" for number in range(2, len(self._found) + 3)))
        name = next(name for name in names if _is_same(self._found.get(name, source), source))
        if name not in self._found:
            if len(self._found) == MAX_VOLUMES:
                return None
            self._findings.origins[join("volumes", len(self._found))] = path
            self._findings.origins[join("volumes", name)] = path
            self._found[name] = source
        return name

    def source(self, volume: Fields) -> tuple[Document, bool] | None:
        """The source of a template's volume, and whether it is read-only; None if jobs do not support it."""
        if "persistentVolumeClaim" in volume:
            claim = volume.fields("persistentVolumeClaim")
            name, read_only = claim.text("claimName"), bool(claim.take("readOnly"))
            claim.close()
            made = self._claims.get(name)
            return ({"volume_claim_name": name} if made is None else {"volume_claim": made}), read_only
        if "emptyDir" in volume:
            return self._empty_dir(volume.fields("emptyDir"))
        return None

    def _empty_dir(self, empty: Fields) -> tuple[Document, bool] | None:
        """None if its medium is neither disk nor memory."""
        medium, limit = empty.take("medium"), empty.take("sizeLimit")
        if medium not in (None, *Medium):
            return None
        if _is_zero(limit):
            self._findings.not_honoured(empty.at("sizeLimit"), translate("zero means no limit."))
            limit = None
        empty.close()
        fields = {"medium": medium, "size_limit": limit}
        return {"empty_dir": {name: value for name, value in fields.items() if value not in (None, "")}}, False

    def of_job(self, volume: Fields, place: int) -> MountRequest:
        """A volume of a Volcano Job, which each of its tasks mounts."""
        name, path = volume.text("volumeClaimName"), volume.take("mountPath")
        source: Document = {"volume_claim_name": name} if name else {}
        if "volumeClaim" in volume:
            source["volume_claim"] = claim(volume.fields("volumeClaim"))
        volume.close()
        return MountRequest(name or f"volume-{place}", source, path, volume.path, volume.path, volume.at("mountPath"))


def _is_same(one: Document, other: Document) -> bool:
    """Whether both are the same volume. Two claims with equal requests are still two."""
    return one == other and one.get("volume_claim") is other.get("volume_claim")


def _is_zero(size: object) -> bool:
    try:
        return parse_quantity("memory", str(size)) == 0
    except ValueError:
        return False


def is_deleted_with_job(document: Document) -> bool:
    """Whether the claim is created for its job and deleted with it."""
    metadata = document.get("metadata")
    annotations = metadata.get("annotations") if isinstance(metadata, dict) else None
    return isinstance(annotations, dict) and annotations.get(words.DELETED_WITH_JOB) == "true"


def claim(spec: Fields) -> Document:
    """The requests in the `spec` of a claim."""
    resources = spec.fields("resources")
    requests = resources.mapping("requests")
    fields = {
        "storage": requests.get("storage"),
        "access_modes": spec.take("accessModes"),
        "storage_class": spec.take("storageClassName"),
    }
    if fields["storage_class"] == "":
        why = translate("claims without a class are not supported. The cluster's default class is used.")
        spec.findings.not_honoured(spec.at("storageClassName"), why)
    resources.close()
    spec.close()
    return {name: value for name, value in fields.items() if value is not None}


def dump_volumes(task: TaskSpec, spec: JobSpec) -> list[Document]:
    """The volumes that a task's template needs."""
    return [{"name": one.name, **_source(spec, one)} for one in spec.volumes if is_mounted(task, one.name)]


def dump_mounts(mounts: Iterable[VolumeMount]) -> list[Document]:
    """The volume mounts of a container."""
    return [
        {
            "name": mount.name,
            "mountPath": mount.mount_path,
            **({"subPath": mount.sub_path} if mount.sub_path else {}),
            **({"readOnly": True} if mount.read_only else {}),
        }
        for mount in mounts
    ]


def dump_claims(spec: JobSpec) -> list[Document]:
    """The claims that are created for the job."""
    return [
        {
            "apiVersion": "v1",
            "kind": CLAIM,
            "metadata": {"name": claim_name(spec, volume), "annotations": {words.DELETED_WITH_JOB: "true"}},
            "spec": claim_spec(volume.volume_claim),
        }
        for volume in spec.volumes
        if volume.volume_claim
    ]


def claim_spec(wanted: VolumeClaim) -> Document:
    """The `spec` of a claim."""
    return {
        "accessModes": [str(mode) for mode in wanted.access_modes],
        "resources": {"requests": {"storage": wanted.storage}},
        **({"storageClassName": wanted.storage_class} if wanted.storage_class else {}),
    }


def empty_dir(volume: VolumeSpec) -> Document:
    """The source of an empty directory."""
    wanted = volume.empty_dir
    fields = {"medium": str(wanted.medium), "sizeLimit": wanted.size_limit} if wanted else {}
    return {"emptyDir": {name: value for name, value in fields.items() if value}}


def claim_name(spec: JobSpec, volume: VolumeSpec) -> str:
    """The name of the claim that is created for this job."""
    return f"{spec.name}-{volume.name}"


def _source(spec: JobSpec, volume: VolumeSpec) -> Document:
    if volume.empty_dir is not None:
        return empty_dir(volume)
    return {"persistentVolumeClaim": {"claimName": volume.volume_claim_name or claim_name(spec, volume)}}
