"""PaddleJobs (`kubeflow.org/v1`). Without a Master, the first worker leads."""

from collections.abc import Collection, Mapping

from hekla.domain.formats.roles import RoleKind


def _arguments(tasks: Collection[str]) -> Mapping[str, str]:
    return {} if "master" in tasks else {"master": "worker"}


PADDLEJOB = RoleKind(
    kind="PaddleJob",
    replicas="paddleReplicaSpecs",
    roles=("Master", "Worker"),
    leaders=("Master",),
    restart="OnFailure",
    container="paddle",
    plugin="paddle",
    port="master",
    arguments=_arguments,
).format()
