"""TrainJobs (`trainer.kubeflow.org/v1alpha1`): a number of equal nodes, and a runtime that connects them.

Only the framework of a runtime is known, from the runtime's name; its templates are not read. As in Kubeflow's own
runtimes, a failed pod is restarted up to six times. The queue is in the same annotation as for Kubernetes Jobs.
"""

from typing import Any

from hekla.domain import frameworks
from hekla.domain.errors import Invalid, Problem
from hekla.domain.formats import annotations, pods
from hekla.domain.formats.base import Format
from hekla.domain.formats.fields import Fields
from hekla.domain.formats.reader import ManifestReader, without_none
from hekla.domain.formats.writing import deadline, metadata, priority_class, without_empty
from hekla.domain.jobspec import JobSpec
from hekla.domain.translation import translate
from hekla.domain.validation import quote

_NODE = "node"
_USUAL_RETRIES = 6
_RUNTIMES = {
    "torch-distributed": ("pytorch", {"master": _NODE}),
    "jax-distributed": ("jax", {"worker": _NODE}),
    "xgboost-distributed": ("xgboost", {"master": _NODE}),
}


def _read(reading: ManifestReader, job: Fields) -> dict[str, Any]:
    more = {"active_deadline_seconds": annotations.DEADLINE, "priority_class": annotations.PRIORITY_CLASS}
    document = reading.head(job.fields("metadata"), queue=annotations.QUEUE, **more)
    spec = job.fields("spec")
    trainer = spec.fields("trainer")
    document |= {"max_retry": _USUAL_RETRIES, "plugins": _plugins(reading, spec.fields("runtimeRef"), trainer)}
    reading.unless(spec, "suspend", (False,), translate("a submitted job starts as soon as it fits."))
    reading.unless(spec, "managedBy", (), translate("this platform runs the job."))
    reading.findings.origins |= {"tasks": trainer.path, "tasks.0": trainer.path}
    task = {
        "name": _NODE,
        "replicas": reading.take(trainer, "numNodes", "tasks.0.replicas"),
        "environment": reading.environment,
        "policies": [{"events": ["PodFailed"], "action": "RestartPod"}],
    }
    task |= pods.container(reading, trainer, "tasks.0", resources="resourcesPerNode")
    spec.close()
    return {**document, "tasks": [without_none(task)]}


def _plugins(reading: ManifestReader, runtime: Fields, trainer: Fields) -> dict[str, list[str]]:
    name = runtime.text("name")
    runtime.ignore("apiGroup", "kind")
    runtime.close()
    if name not in _RUNTIMES:
        why = translate(
            "{name} is not supported. It is not one of {names}, so pods get no information about each other.",
            name=quote(name),
            names=", ".join(_RUNTIMES),
        )
        reading.findings.not_honoured(runtime.at("name"), why)
        return {}
    plugin, arguments = _RUNTIMES[name]
    nodes, processes = trainer.take("numNodes"), trainer.take("numProcPerNode")
    if plugin == "pytorch":
        torchrun = {"nnodes": 1 if nodes is None else nodes, "nproc-per-node": processes}
        arguments = arguments | {key: str(value) for key, value in torchrun.items() if value is not None}
    elif processes is not None:
        reading.findings.not_honoured(
            trainer.at("numProcPerNode"), translate("only torchrun starts several processes.")
        )
    return reading.plugin(plugin, arguments, runtime.path)


def _write(spec: JobSpec) -> dict[str, Any]:
    if len(spec.tasks) != 1:
        names = ", ".join(task.name for task in spec.tasks)
        message = translate("All nodes of a TrainJob are the same. This job has {names}.", names=names)
        raise Invalid([Problem("tasks", message)])
    task = spec.tasks[0]
    runtime = next((name for name, (plugin, _) in _RUNTIMES.items() if plugin in spec.plugins), "torch-distributed")
    trainer = without_empty(
        image=task.image or None,
        command=list(task.command),
        args=list(task.args),
        env=pods.variables(task),
        numNodes=task.replicas,
        numProcPerNode=_processes(spec),
        resourcesPerNode=pods.amounts(task),
    )
    environment = {annotations.ENVIRONMENT: task.environment} if task.environment else {}
    head = metadata(spec, {annotations.QUEUE: spec.queue, **environment, **deadline(spec), **priority_class(spec)})
    return {"metadata": head, "spec": {"runtimeRef": {"name": runtime}, "trainer": trainer}}


def _processes(spec: JobSpec) -> str | int | None:
    """The number of processes that torchrun starts on a node; None for the default."""
    options = frameworks.load_frameworks()["pytorch"].read(spec.plugins.get("pytorch", ()))[0]
    processes = str(options["nproc-per-node"])
    if processes == "1":
        return None
    return int(processes) if processes.isdigit() else processes


TRAINJOB = Format("trainjob", "trainer.kubeflow.org/v1alpha1", "TrainJob", _read, _write, mounts_files=False)
