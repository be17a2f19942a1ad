"""PyTorchJobs (`kubeflow.org/v1`). Without a Master, the first worker leads torch.distributed.

An elastic job has `minReplicas` to `maxReplicas` workers, which the plugin pytorch passes to torchrun. Other options of
torchrun become variables that it reads (`PET_…`).
"""

from collections.abc import Collection, Mapping
from typing import Any

from hekla.domain import frameworks
from hekla.domain.formats.fields import Fields
from hekla.domain.formats.kubeflow import Document, KubeflowKind
from hekla.domain.formats.reader import ManifestReader, without_none
from hekla.domain.jobspec import JobSpec, TaskSpec
from hekla.domain.translation import gettext_noop, translate

_MEETING = gettext_noop("torchrun uses c10d rendezvous at the master or the first worker.")


def _arguments(tasks: Collection[str]) -> Mapping[str, str]:
    return {} if "master" in tasks else {"master": "worker"}


def _read(reading: ManifestReader, spec: Fields, document: Document) -> None:
    variables = {"PET_NPROC_PER_NODE": spec.take("nprocPerNode")}
    if "elasticPolicy" in spec:
        variables["PET_MAX_RESTARTS"] = _elastic(reading, spec.fields("elasticPolicy"), document)
    spec.ignore("elasticPolicy")
    settings = {name: str(value) for name, value in variables.items() if value is not None}
    for task in document["tasks"]:
        task["env"] = {**settings, **task.get("env", {})}


def _elastic(reading: ManifestReader, policy: Fields, document: Document) -> object:
    """Set the range of workers, and torchrun's options. Returns how often torchrun may restart its processes."""
    place, workers = next(
        ((n, task) for n, task in enumerate(document["tasks"]) if task["name"] == "worker"), (0, dict[str, Any]())
    )
    least = reading.take(policy, "minReplicas", f"tasks.{place}.min_available")
    most = policy.take("maxReplicas")
    if most is not None:
        reading.findings.origins[f"tasks.{place}.replicas"] = policy.at("maxReplicas")
    workers |= without_none({"min_available": least, "replicas": most})
    for name in ("rdzvHost", "rdzvPort", "rdzvId"):
        reading.unless(policy, name, (), translate(_MEETING))
    reading.unless(policy, "rdzvBackend", ("c10d",), translate(_MEETING))
    processes, restarts = policy.take("nProcPerNode"), policy.take("maxRestarts")
    policy.close()
    size = workers.get("replicas", 1)
    masters = len(document["tasks"]) - 1
    least = size if least is None else least
    if isinstance(size, int) and isinstance(least, int):
        document["plugins"]["pytorch"].append(f"--nnodes={least + masters}:{size + masters}")
    if processes is not None:
        document["plugins"]["pytorch"].append(f"--nproc-per-node={processes}")
    return restarts


def _write(spec: JobSpec, roles: Mapping[str, TaskSpec]) -> Document:
    workers = roles.get("Worker")
    if workers is None or not workers.min_available:
        return {}
    options = frameworks.load_frameworks()["pytorch"].read(spec.plugins.get("pytorch", ()))[0]
    processes = str(options["nproc-per-node"])
    per_node = int(processes) if processes.isdigit() else None
    elastic = {"minReplicas": workers.min_available, "maxReplicas": workers.replicas, "nProcPerNode": per_node}
    return {"elasticPolicy": without_none(elastic)}


PYTORCHJOB = KubeflowKind(
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
