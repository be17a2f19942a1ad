"""JSON merge patches (RFC 7396) of a job's manifest, as a Volcano Job.

A field replaces the field of its name, mappings are merged, null removes a field, and a list replaces the whole list.
One addition: a mapping in place of a list of named entries (tasks, containers, env) changes those entries by name. By
the RFC it would replace the list with a mapping, which is never valid.
"""

from collections.abc import Mapping
from typing import Any

from hekla.domain.errors import Invalid, Problem
from hekla.domain.formats.base import LoadedJob
from hekla.domain.formats.manifests import documents, load_documents
from hekla.domain.jobspec import JobSpec
from hekla.domain.translation import translate

_FIELDS = ("spec", "metadata")
_NAMED = ("tasks", "containers", "env")


def apply_patch(spec: JobSpec, patch: Mapping[str, Any]) -> LoadedJob:
    """The patched job. Raises Invalid with paths in the manifest, for example `spec.tasks[0].replicas`."""
    *files, manifest = documents(spec)
    problems = list(_misplaced(patch))
    if problems:
        raise Invalid(problems)
    before = load_documents([*files, manifest])
    after = load_documents([*files, merge(manifest, patch)])
    return LoadedJob(after.spec, tuple(warning for warning in after.warnings if warning not in before.warnings))


def merge(target: Any, patch: Any) -> Any:  # noqa: ANN401  (JSON-like data)
    """The target with the patch merged in; neither is changed."""
    if not isinstance(patch, Mapping):
        return patch
    if isinstance(target, list) and all(isinstance(entry, Mapping) and "name" in entry for entry in target):
        named = merge({str(entry["name"]): entry for entry in target}, patch)
        return [{"name": name, **entry} if isinstance(entry, Mapping) else entry for name, entry in named.items()]
    result = dict(target) if isinstance(target, Mapping) else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = merge(result.get(name, [] if name in _NAMED else None), value)
    return result


def _misplaced(patch: Mapping[str, Any]) -> list[Problem]:
    """Fields that a patch must not change: the name comes from the flow, and the job stays a Job."""
    metadata = patch.get("metadata")
    named = isinstance(metadata, Mapping) and "name" in metadata
    elsewhere = translate("A patch can change spec or metadata of the job only.")
    wrong = [Problem(name, elsewhere) for name in patch if name not in _FIELDS]
    if named:
        wrong.append(Problem("metadata.name", translate("The flow and the step set the name of the job.")))
    return wrong
