"""PaddleJobs (`kubeflow.org/v1`): the workers are PaddlePaddle's trainers, and meet at the first of them."""

from collections.abc import Collection, Mapping

from hekla.domain.formats.fields import Fields
from hekla.domain.formats.reading import Reading
from hekla.domain.formats.roles import Document, RoleKind
from hekla.domain.sentences import said, sentence

_MASTER = sentence("trainers meet at the first worker, so a master beside workers is told nothing of them.")


def _arguments(tasks: Collection[str]) -> Mapping[str, str]:
    return {} if "worker" in tasks else {"worker": "master"}


def _read(reading: Reading, spec: Fields, document: Document) -> None:
    if {"master", "worker"} <= {task["name"] for task in document["tasks"]}:
        reading.findings.not_honoured(f"{spec.path}.paddleReplicaSpecs.Master", said(_MASTER))


PADDLEJOB = RoleKind(
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
