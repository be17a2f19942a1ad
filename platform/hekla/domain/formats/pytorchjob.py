"""PyTorchJobs (`kubeflow.org/v1`). Without a Master, the first worker leads torch.distributed.

What speaks to torchrun becomes variables that it reads (`PET_…`). An elastic job's workers run from `minReplicas` to
`maxReplicas`.
"""

from collections.abc import Collection, Mapping
from typing import Any

from hekla.domain.formats.fields import Fields
from hekla.domain.formats.reading import Reading, without_none
from hekla.domain.formats.roles import Document, RoleKind
from hekla.domain.formats.writing import filled
from hekla.domain.jobspec import JobSpec, TaskSpec

_VARIABLES = {
    "rdzvId": "PET_RDZV_ID",
    "maxRestarts": "PET_MAX_RESTARTS",
    "nProcPerNode": "PET_NPROC_PER_NODE",
}
_MEETING = "torchrun meets at the address of the master or the first worker."


def _arguments(tasks: Collection[str]) -> Mapping[str, str]:
    return {} if "master" in tasks else {"master": "worker"}


def _read(reading: Reading, spec: Fields, document: Document) -> None:
    variables = {"PET_NPROC_PER_NODE": spec.take("nprocPerNode")}
    if "elasticPolicy" in spec:
        variables |= _elastic(reading, spec.fields("elasticPolicy"), document)
    spec.ignore("elasticPolicy")
    told = {name: str(value) for name, value in variables.items() if value is not None}
    for task in document["tasks"]:
        task["env"] = {**told, **task.get("env", {})}


def _elastic(reading: Reading, policy: Fields, document: Document) -> dict[str, Any]:
    """Let the workers' number vary; answers what torchrun is told about it."""
    place, workers = next(
        ((n, task) for n, task in enumerate(document["tasks"]) if task["name"] == "worker"), (0, dict[str, Any]())
    )
    least = reading.take(policy, "minReplicas", f"tasks.{place}.min_available")
    most = policy.take("maxReplicas")
    if most is not None:
        reading.findings.origins[f"tasks.{place}.replicas"] = policy.at("maxReplicas")
    workers |= without_none({"min_available": least, "replicas": most})
    variables = {variable: policy.take(name) for name, variable in _VARIABLES.items()}
    for name in ("rdzvHost", "rdzvPort"):
        reading.unless(policy, name, (), _MEETING)
    backend = policy.take("rdzvBackend") or "c10d"
    policy.close()
    size = workers.get("replicas", 1)
    nodes = f"{size if least is None else least}:{size}"
    return {"PET_RDZV_BACKEND": backend, "PET_NNODES": nodes, **variables}


def _write(_spec: JobSpec, roles: Mapping[str, TaskSpec]) -> Document:
    workers = roles.get("Worker")
    if workers is None or workers.min_available is None:
        return {}
    return {"elasticPolicy": filled(minReplicas=workers.min_available, maxReplicas=workers.replicas)}


PYTORCHJOB = RoleKind(
    kind="PyTorchJob",
    replicas="pytorchReplicaSpecs",
    roles=("Master", "Worker"),
    leaders=("Master",),
    restart="OnFailure",
    container="pytorch",
    plugin="pytorch",
    port="pytorchjob-port",
    arguments=_arguments,
    read=_read,
    write=_write,
).format()
