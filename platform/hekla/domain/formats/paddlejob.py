"""PaddleJobs (`kubeflow.org/v1`): the workers are PaddlePaddle's trainers; the first one is their rendezvous."""

from collections.abc import Collection, Mapping

from hekla.domain.formats.fields import Fields
from hekla.domain.formats.kubeflow import Document, KubeflowKind
from hekla.domain.formats.reader import ManifestReader
from hekla.domain.translation import gettext_noop, translate

_MASTER = gettext_noop("trainers meet at the first worker. A separate master has no information about them.")


def _arguments(tasks: Collection[str]) -> Mapping[str, str]:
    return {} if "worker" in tasks else {"worker": "master"}


def _read(reading: ManifestReader, spec: Fields, document: Document) -> None:
    if {"master", "worker"} <= {task["name"] for task in document["tasks"]}:
        reading.findings.not_honoured(f"{spec.path}.paddleReplicaSpecs.Master", translate(_MASTER))


PADDLEJOB = KubeflowKind(
    kind="PaddleJob",
    replicas="paddleReplicaSpecs",
    roles=("Master", "Worker"),
    leaders=("Master",),
    restart="OnFailure",
    container="paddle",
    plugin="paddle",
    arguments=_arguments,
    read=_read,
).format()
