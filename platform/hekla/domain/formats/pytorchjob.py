"""PyTorchJobs (`kubeflow.org/v1`). Without a Master, the first worker leads torch.distributed.

An elastic job starts with its `replicas` of the worker and may have `minReplicas` to `maxReplicas`, which the plugin
pytorch passes to torchrun; with a metric for the utilization of GPUs, Hekla scales it in this range. Other options of
torchrun become variables that it reads (`PET_…`).
"""

import re
from collections.abc import Collection, Mapping
from typing import Any

from hekla.domain import frameworks
from hekla.domain.formats import autoscaling
from hekla.domain.formats.fields import Fields
from hekla.domain.formats.kubeflow import Document, KubeflowKind
from hekla.domain.formats.reader import ManifestReader, without_none
from hekla.domain.formats.replica_range import start_size
from hekla.domain.jobspec import JobSpec
from hekla.domain.task_spec import TaskSpec
from hekla.domain.translation import gettext_noop, translate

_RANGE = re.compile(r"(\d+):(\d+)", re.ASCII)
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
    """Set the minimum of workers, and torchrun's options. Returns how often torchrun may restart its processes."""
    place, workers = next(
        ((n, task) for n, task in enumerate(document["tasks"]) if task["name"] == "worker"), (0, dict[str, Any]())
    )
    least, most = reading.take(policy, "minReplicas", f"tasks.{place}.min_available"), policy.take("maxReplicas")
    for name in ("rdzvHost", "rdzvPort", "rdzvId"):
        reading.unless(policy, name, (), translate(_MEETING))
    reading.unless(policy, "rdzvBackend", ("c10d",), translate(_MEETING))
    processes, restarts = policy.take("nProcPerNode"), policy.take("maxRestarts")
    metrics = autoscaling.read_metrics(reading, policy, most, f"tasks.{place}.autoscaling")
    workers |= without_none({"autoscaling": workers.get("autoscaling", metrics)})
    policy.close()
    size = start_size(reading, workers.get("replicas"), (least, most), f"tasks.{place}.replicas")
    workers |= without_none({"min_available": least, "replicas": size})
    masters = len(document["tasks"]) - 1
    least, most = size if least is None else least, size if most is None else most
    if isinstance(least, int) and isinstance(most, int):
        document["plugins"]["pytorch"].append(f"--nnodes={least + masters}:{most + masters}")
    if processes not in (None, 1):
        document["plugins"]["pytorch"].append(f"--nproc-per-node={processes}")
    return restarts


def _write(spec: JobSpec, roles: Mapping[str, TaskSpec]) -> Document:
    workers = roles.get("Worker")
    options = frameworks.load_frameworks()["pytorch"].read(spec.plugins.get("pytorch", ()))[0]
    nodes = _RANGE.fullmatch(str(options["nnodes"]))
    if workers is None or not (workers.min_available or nodes):
        return {}
    masters = len(roles) - 1
    least = workers.min_available
    if nodes and least is None and int(nodes[1]) - masters != workers.replicas:
        least = int(nodes[1]) - masters
    most = int(nodes[2]) - masters if nodes else workers.replicas
    processes = str(options["nproc-per-node"])
    per_node = int(processes) if processes.isdigit() and processes != "1" else None
    return {"elasticPolicy": without_none({"minReplicas": least, "maxReplicas": most, "nProcPerNode": per_node})}


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
