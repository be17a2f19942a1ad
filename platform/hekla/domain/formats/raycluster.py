"""RayClusters (`ray.io/v1`), as KubeRay runs them: a head, and groups of workers that join it.

The head becomes the task `head`, each group a task with its name; together they are one gang. With the autoscaler a
group needs its `minReplicas`, and holds up to `maxReplicas` while there is room. Failed pods are restarted.
"""

from typing import Any

from hekla.domain.formats import annotations, pods
from hekla.domain.formats.base import Format
from hekla.domain.formats.fields import Fields
from hekla.domain.formats.ray_start import StartParameters
from hekla.domain.formats.reader import ManifestReader, without_none
from hekla.domain.formats.replica_range import start_size
from hekla.domain.task_spec import MAX_RETRY
from hekla.domain.translation import gettext_noop, translate
from hekla.domain.validation import join

Document = dict[str, Any]

HEAD, VERSION = "head", "ray.io/v1"
_OWN_COMMAND = "ray.io/overwrite-container-cmd"
"""The annotation with which the commands of the containers run unchanged."""
_LABELS = {"queue": "volcano.sh/queue-name", "priority_class": "ray.io/priority-class-name"}
_SCHEDULER = "ray.io/scheduler-name"
_IN_PODS = ("Always", "OnFailure", "Never")
_NO_LIMIT = 2**31 - 1
"""KubeRay's default of `maxReplicas`."""
_SCALED = gettext_noop("workers beyond minReplicas start when there is room for them, and are preempted first.")
_LIMIT = gettext_noop("Ray restarts its pods without a limit. Here a job restarts at most {most} times.")


def read_head(reading: ManifestReader, metadata: Fields) -> tuple[Document, bool]:
    """The JobSpec fields in the metadata, and whether the commands of containers run unchanged."""
    labels = metadata.mapping("labels")
    more = {"queue": annotations.QUEUE, "priority_class": annotations.PRIORITY_CLASS, "own_command": _OWN_COMMAND}
    document = reading.head(metadata, **more)
    for field, name in _LABELS.items():
        if name in labels:
            reading.findings.origins[field] = f"{metadata.at('labels')}.{name}"
            document[field] = labels.pop(name)
    scheduler = labels.pop(_SCHEDULER, None)
    if scheduler not in (None, *pods.SCHEDULERS):
        reading.findings.not_honoured(f"{metadata.at('labels')}.{_SCHEDULER}", translate(pods.OTHER_SCHEDULER))
    for name in labels:
        reading.findings.not_honoured(f"{metadata.at('labels')}.{name}")
    return document, document.pop("own_command") == "true"


def read_tasks(reading: ManifestReader, spec: Fields, *, runs_unchanged: bool) -> Document:
    """The tasks of head and workers, and the job plugin that connects them."""
    spec.ignore("rayVersion")
    reading.unless(spec, "suspend", (False,), translate("a submitted job starts as soon as it fits."))
    reading.unless(spec, "managedBy", (), translate("this platform runs the job."))
    is_scaled = spec.take("enableInTreeAutoscaling") is True
    if is_scaled:
        reading.findings.not_honoured(spec.at("enableInTreeAutoscaling"), translate(_SCALED))
    groups = spec.list_of_fields("workerGroupSpecs")
    reading.findings.origins["tasks"] = spec.at("workerGroupSpecs")
    tasks = [
        _restarts({"name": HEAD}),
        *(_size(reading, group, n, is_scaled=is_scaled) for n, group in enumerate(groups, 1)),
    ]
    head = spec.fields("headGroupSpec")
    parameters = [StartParameters(group) for group in (head, *groups)]
    worker = {"worker": str(tasks[1].get("name"))} if groups else {}
    plugins = reading.plugin("ray", {**parameters[0].plugin_arguments, **worker}, head.at("rayStartParams"))
    for place, group in enumerate((head, *groups)):
        task = tasks[place] | _pod(reading, group, place)
        if not runs_unchanged:
            start = parameters[place]
            task["command"] = start.worker_command(task) if place else start.head_command(task, plugins["ray"])
            task.pop("args", None)
        tasks[place] = task
        group.close()
    spec.close()
    return {"tasks": tasks, "plugins": plugins}


def _pod(reading: ManifestReader, group: Fields, place: int) -> Document:
    target = join("tasks", place)
    reading.findings.origins[target] = group.path
    pod = pods.read(reading, group.fields("template"), target, restarts=_IN_PODS)
    return without_none(pod)


def _size(reading: ManifestReader, group: Fields, place: int, *, is_scaled: bool) -> Document:
    """The name of a group and its numbers of pods. A replica of several hosts is a partition of the task."""
    target = join("tasks", place)
    least, most = group.take("minReplicas"), group.take("maxReplicas")
    most = None if most == _NO_LIMIT else most
    wanted = least or 0 if group.take("replicas") is None else group.take("replicas")
    reading.findings.origins[join(target, "replicas")] = group.at("replicas")
    size = start_size(reading, wanted, (least, most), join(target, "replicas"))
    if is_scaled and most is not None:
        size = reading.take(group, "maxReplicas", join(target, "replicas"))
    least = (reading.take(group, "minReplicas", join(target, "min_available")) or 0) if is_scaled else None
    hosts = reading.take(group, "numOfHosts", join(target, "partition_size"))
    document = {"name": reading.take(group, "groupName", join(target, "name")), "replicas": size}
    if hosts in (None, 1) or not isinstance(hosts, int) or not isinstance(size, int):
        return _restarts({**document, "min_available": least, "partition_size": None if hosts == 1 else hosts})
    partitions = {"partition_size": hosts, "min_partitions": (least if is_scaled else size) or None}
    least = 0 if is_scaled and not least else None
    return _restarts({**document, **partitions, "replicas": size * hosts, "min_available": least})


def _restarts(task: Document) -> Document:
    """The task, whose failed pods restart; a partition restarts as a whole."""
    action = "RestartPartition" if task.get("partition_size") else "RestartPod"
    return without_none({**task, "policies": [{"events": ["PodFailed"], "action": action}]})


def _read(reading: ManifestReader, manifest: Fields) -> Document:
    document, runs_unchanged = read_head(reading, manifest.fields("metadata"))
    spec = manifest.fields("spec")
    reading.findings.origins["max_retry"] = spec.path
    reading.findings.remark("max_retry", translate(_LIMIT, most=MAX_RETRY))
    return {**document, **read_tasks(reading, spec, runs_unchanged=runs_unchanged), "max_retry": MAX_RETRY}


RAYCLUSTER = Format("raycluster", VERSION, "RayCluster", _read)
