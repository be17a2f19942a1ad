"""TFJobs (`kubeflow.org/v1`). Without a Chief, the job is complete when all its workers have succeeded."""

from collections.abc import Collection, Mapping

from hekla.domain.formats.fields import Fields
from hekla.domain.formats.kubeflow import Document, KubeflowKind
from hekla.domain.formats.reader import ManifestReader
from hekla.domain.jobspec import JobSpec, TaskSpec
from hekla.domain.translation import gettext_noop, translate

_CHIEFS = ("Chief", "Master")
_FIRST_WORKER = gettext_noop("the job completes when all workers have succeeded, not only the first.")


def _arguments(tasks: Collection[str]) -> Mapping[str, str]:
    return {"chief": "master"} if "master" in tasks and "chief" not in tasks else {}


def _read(reading: ManifestReader, spec: Fields, _document: Document) -> None:
    reading.unless(spec, "successPolicy", ("AllWorkers",), translate(_FIRST_WORKER))


def _write(_spec: JobSpec, roles: Mapping[str, TaskSpec]) -> Document:
    return {} if any(role in roles for role in _CHIEFS) else {"successPolicy": "AllWorkers"}


TFJOB = KubeflowKind(
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
