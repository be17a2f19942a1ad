"""What written manifests have in common."""

import re
from collections.abc import Mapping
from typing import Any

from hekla.domain.formats import annotations as words
from hekla.domain.formats import volumes
from hekla.domain.jobspec import JobSpec
from hekla.domain.volumes import WORKING_DIR

_CONFIG_KEY = re.compile(r"[-._A-Za-z0-9]+")


def without_empty(**fields: Any) -> dict[str, Any]:  # noqa: ANN401
    """The fields without None, empty lists and empty mappings."""
    return {name: value for name, value in fields.items() if value is not None and value not in ([], {})}


def metadata(spec: JobSpec, more: Mapping[str, str] | None = None) -> dict[str, Any]:
    """The name, and annotations for facts that manifests have no field for. `more`: further annotations."""
    annotations = {
        **spec.annotations,
        words.KIND: spec.kind if spec.kind != "training" else None,
        words.DESCRIPTION: spec.description or None,
        words.PRIORITY: str(spec.priority) if spec.priority else None,
        words.KEEP_FAILED: str(spec.keep_failed_seconds) if spec.keep_failed_seconds else None,
        words.IDLE_AFTER: str(spec.idle_after_seconds) if spec.idle_after_seconds else None,
        words.IDLE_GRACE: str(spec.idle_grace_seconds) if spec.idle_grace_seconds else None,
        **(more or {}),
    }
    return without_empty(name=spec.name, annotations=without_empty(**annotations))


def deadline(spec: JobSpec) -> dict[str, str]:
    """The annotation with the job's deadline, if it has one."""
    return {words.DEADLINE: str(spec.active_deadline_seconds)} if spec.active_deadline_seconds else {}


def min_resources(spec: JobSpec) -> dict[str, str]:
    """The annotation with what must be free before the job is admitted, if it says so."""
    amounts = ",".join(f"{name}={amount}" for name, amount in spec.min_resources.items())
    return {words.MIN_RESOURCES: amounts} if amounts else {}


def priority_class(spec: JobSpec) -> dict[str, str]:
    """The annotation that names the job's priority class, if it has one."""
    return {words.PRIORITY_CLASS: spec.priority_class} if spec.priority_class else {}


def config_map(spec: JobSpec) -> dict[str, Any]:
    """The ConfigMap with the job's files."""
    data = dict(zip(_keys(spec), spec.files.values(), strict=True))
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": _config_name(spec)}, "data": data}


def companions(spec: JobSpec) -> list[dict[str, Any]]:
    """The documents of what the job's pods mount: the ConfigMap and the claims."""
    return [*([config_map(spec)] if spec.files else []), *volumes.dump_claims(spec)]


def folder(spec: JobSpec) -> str:
    """The mount path of the job's files. With volumes, it is the working folder of a pod in Hekla."""
    return str(WORKING_DIR) if spec.volumes else words.FOLDER


def files_mount(spec: JobSpec) -> dict[str, str]:
    """The mount of the job's files in a container."""
    return {"name": _files_name(spec), "mountPath": folder(spec)}


def files_volume(spec: JobSpec) -> dict[str, Any]:
    """The volume that holds the job's files at their paths."""
    keys = _keys(spec)
    plain = keys == list(spec.files)
    items = [{"key": key, "path": path} for key, path in zip(keys, spec.files, strict=True)]
    return {
        "name": _files_name(spec),
        "configMap": without_empty(name=_config_name(spec), items=[] if plain else items),
    }


def _files_name(spec: JobSpec) -> str:
    """A name that no volume of the job has."""
    names = {volume.name for volume in spec.volumes}
    return next(name for name in ("files", *(f"files-{n}" for n in range(len(names)))) if name not in names)


def _keys(spec: JobSpec) -> list[str]:
    """The ConfigMap keys of the files. Keys have no folders: if a path is not a valid key, all files are numbered."""
    if all(_CONFIG_KEY.fullmatch(path) for path in spec.files):
        return list(spec.files)
    return [f"file-{number}" for number in range(len(spec.files))]


def _config_name(spec: JobSpec) -> str:
    return f"{spec.name}-files"
