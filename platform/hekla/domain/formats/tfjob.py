"""TFJobs (`kubeflow.org/v1`). Without a Chief, the first worker completes the job, or all do (`successPolicy`)."""

from collections.abc import Collection, Mapping

from hekla.domain.formats.fields import Fields
from hekla.domain.formats.kubeflow import Document, KubeflowKind
from hekla.domain.formats.reader import ManifestReader
from hekla.domain.jobspec import JobSpec
from hekla.domain.task_spec import SuccessPolicy, TaskSpec
from hekla.domain.translation import gettext_noop, translate

_CHIEFS = ("Chief", "Master")
_ALL_WORKERS = "AllWorkers"
_FIRST_WORKER = gettext_noop("the job completes when its first worker has succeeded.")


def _arguments(tasks: Collection[str]) -> Mapping[str, str]:
    return {"chief": "master"} if "master" in tasks and "chief" not in tasks else {}


def _success_policy(reading: ManifestReader, spec: Fields, roles: Collection[str]) -> SuccessPolicy:
    """As in Kubeflow, a chief completes the job, whatever the field says."""
    if any(role in roles for role in _CHIEFS):
        spec.ignore("successPolicy")
        return SuccessPolicy.ALL_REPLICAS
    reading.unless(spec, "successPolicy", (_ALL_WORKERS,), translate(_FIRST_WORKER))
    if spec.take("successPolicy") == _ALL_WORKERS:
        return SuccessPolicy.ALL_REPLICAS
    return SuccessPolicy.FIRST_REPLICA


def _write(_spec: JobSpec, roles: Mapping[str, TaskSpec]) -> Document:
    is_first_enough = "Worker" in roles and roles["Worker"].success_policy is SuccessPolicy.FIRST_REPLICA
    return {} if is_first_enough or any(role in roles for role in _CHIEFS) else {"successPolicy": _ALL_WORKERS}


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
    success_policy=_success_policy,
    write=_write,
).format()
