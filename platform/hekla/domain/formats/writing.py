"""What the manifests that we write have in common."""

import re
from collections.abc import Mapping
from typing import Any

from hekla.domain.formats import annotations as words
from hekla.domain.formats import volumes
from hekla.domain.jobspec import JobSpec
from hekla.domain.volumes import WORKING_DIR

_CONFIG_KEY = re.compile(r"[-._A-Za-z0-9]+")


def without_empty(**fields: Any) -> dict[str, Any]:  # noqa: ANN401
    """The fields that say something."""
    return {name: value for name, value in fields.items() if value is not None and value not in ([], {})}


def metadata(spec: JobSpec, more: Mapping[str, str] | None = None) -> dict[str, Any]:
    """The name, and as annotations what no field of a manifest says. `more` are further annotations."""
    annotations = {
        **spec.annotations,
        words.KIND: spec.kind if spec.kind != "training" else None,
        words.DESCRIPTION: spec.description or None,
        words.PRIORITY: str(spec.priority) if spec.priority else None,
        **(more or {}),
    }
    return without_empty(name=spec.name, annotations=without_empty(**annotations))


def deadline(spec: JobSpec) -> dict[str, str]:
    """The annotation that tells how long the job may run, if it may not run for ever."""
    return {words.DEADLINE: str(spec.active_deadline_seconds)} if spec.active_deadline_seconds else {}


def priority_class(spec: JobSpec) -> dict[str, str]:
    """The annotation that names the job's priority class, if it has one."""
    return {words.PRIORITY_CLASS: spec.priority_class} if spec.priority_class else {}


def config_map(spec: JobSpec) -> dict[str, Any]:
    """The job's files."""
    data = dict(zip(_keys(spec), spec.files.values(), strict=True))
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": _config_name(spec)}, "data": data}


def companions(spec: JobSpec) -> list[dict[str, Any]]:
    """What stands beside the job for its pods to mount."""
    return [*([config_map(spec)] if spec.files else []), *volumes.dump_claims(spec)]


def folder(spec: JobSpec) -> str:
    """Where the job's files are mounted: with volumes around them, where they are in a pod of ours."""
    return str(WORKING_DIR) if spec.volumes else words.FOLDER


def files_mount(spec: JobSpec) -> dict[str, str]:
    """Where containers have the job's files."""
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
    """One that no volume of the job has."""
    names = {volume.name for volume in spec.volumes}
    return next(name for name in ("files", *(f"files-{n}" for n in range(len(names)))) if name not in names)


def _keys(spec: JobSpec) -> list[str]:
    """A key of a ConfigMap has no folders: where a path is none, all files are numbered."""
    if all(_CONFIG_KEY.fullmatch(path) for path in spec.files):
        return list(spec.files)
    return [f"file-{number}" for number in range(len(spec.files))]


def _config_name(spec: JobSpec) -> str:
    return f"{spec.name}-files"
