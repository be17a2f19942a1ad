"""XGBoostJobs (`kubeflow.org/v1`). Without a Master, the first worker leads."""

from collections.abc import Collection, Mapping

from hekla.domain.formats.kubeflow import KubeflowKind


def _arguments(tasks: Collection[str]) -> Mapping[str, str]:
    return {} if "master" in tasks else {"master": "worker"}


XGBOOSTJOB = KubeflowKind(
    kind="XGBoostJob",
    replicas="xgbReplicaSpecs",
    roles=("Master", "Worker"),
    leaders=("Master",),
    restart="Never",
    container="xgboost",
    plugin="xgboost",
    port="xgboostjob-port",
    arguments=_arguments,
).format()
