"""TFJobs (`kubeflow.org/v1`). Without a Chief, the job is complete when all its workers have succeeded."""

from collections.abc import Collection, Mapping

from hekla.domain.formats.fields import Fields
from hekla.domain.formats.reading import Reading
from hekla.domain.formats.roles import Document, RoleKind
from hekla.domain.jobspec import JobSpec, TaskSpec
from hekla.domain.sentences import said, sentence

_CHIEFS = ("Chief", "Master")
_FIRST_WORKER = sentence("the job is complete when all workers have succeeded, not only the first.")


def _arguments(tasks: Collection[str]) -> Mapping[str, str]:
    return {"chief": "master"} if "master" in tasks and "chief" not in tasks else {}


def _read(reading: Reading, spec: Fields, _document: Document) -> None:
    reading.unless(spec, "successPolicy", ("AllWorkers",), said(_FIRST_WORKER))


def _write(_spec: JobSpec, roles: Mapping[str, TaskSpec]) -> Document:
    return {} if any(role in roles for role in _CHIEFS) else {"successPolicy": "AllWorkers"}


TFJOB = RoleKind(
    kind="TFJob",
    replicas="tfReplicaSpecs",
    roles=("Chief", "Master", "PS", "Worker", "Evaluator"),
    leaders=(*_CHIEFS, "Worker"),
    restart="Never",
    container="tensorflow",
    plugin="tensorflow",
    port="tfjob-port",
    arguments=_arguments,
    read=_read,
    write=_write,
).format()
