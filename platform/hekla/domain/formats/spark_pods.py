"""The driver and the executors of a SparkApplication as tasks.

What a role has no field for comes from the application, for example the image. A pod requests what Spark adds up:
memory, the overhead of its processes, and here the memory of the standalone master or worker next to them.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import ceil
from typing import Any

from hekla.domain.formats import memory_sizes, placement, pods, runtime_settings
from hekla.domain.formats.fields import Fields
from hekla.domain.formats.files import Mounts
from hekla.domain.formats.reader import ManifestReader, without_none
from hekla.domain.translation import gettext_noop, translate
from hekla.domain.validation import join, quote

Document = dict[str, Any]

_DAEMON_MIB, _DAEMON = 256, {"SPARK_DAEMON_MEMORY": "160m"}
"""The memory of the standalone master or worker, and the variable with the part for its objects."""
_MEMORY_MIB, _LEAST_OVERHEAD_MIB = 1024, 384
_OVERHEADS = {"Python": 0.4, "R": 0.4}
_OVERHEAD, _MOST_OVERHEAD = 0.1, 100.0
"""Spark's overhead as a part of the memory: of applications of Python and R, and of all others."""
_OF_POD = ("nodeSelector", "tolerations", "affinity", "hostNetwork", "terminationGracePeriodSeconds", "schedulerName")
_ELSEWHERE = (
    *("cores", "coreRequest", "coreLimit", "memory", "memoryOverhead", "gpu", "instances"),
    *("labels", "env", "envVars", "podSecurityContext"),
)
_LIMIT = gettext_noop("the request is also the limit.")


@dataclass(frozen=True, slots=True)
class SparkRole:
    """The task of a role, and the size of one of its processes."""

    task: Document
    cores: int
    memory_mib: int


def read(reading: ManifestReader, spec: Fields, name: str, place: int) -> SparkRole:
    """The role `name` of an application as the task at `place`."""
    own, target, findings = spec.fields(name), join("tasks", place), reading.findings
    findings.origins[target] = own.path
    data = {field: value for field, value in spec.mapping(name).items() if value is not None}
    pod, container = (Fields(part, own.path, findings) for part in (_pod(spec, data), _container(spec, data)))
    volumes = Fields({"volumes": spec.take("volumes")}, spec.path, findings)
    mounts = Mounts(volumes, reading.companions, reading.volumes, reading.mounts)
    memory = memory_sizes.read(own, "memory", unit="m") or _MEMORY_MIB
    reading.unless(pod, "schedulerName", pods.SCHEDULERS, translate(pods.OTHER_SCHEDULER))
    document = {
        "environment": reading.environment,
        "labels": placement.read_labels(
            Fields({"labels": data.get("labels")}, own.path, findings), join(target, "labels")
        ),
        "node_selector": reading.take(pod, "nodeSelector", join(target, "node_selector")),
        "grace_seconds": reading.take(pod, "terminationGracePeriodSeconds", join(target, "grace_seconds")),
        **placement.read(pod, target),
        **runtime_settings.read(reading, pod, container, target),
        **pods.container(reading, container, target, mounts),
    }
    pod.close()
    document["env"] = _DAEMON | document["env"]
    document["resources"] = {
        "cpu": _cpu(reading, own, join(target, "resources", "cpu")),
        "memory": f"{memory + _overhead(spec, own, memory) + _DAEMON_MIB}Mi",
        **dict(_cards(reading, own.fields("gpu"), join(target, "resources"))),
    }
    findings.origins[join(target, "resources", "memory")] = own.at("memory")
    cores = own.take("cores")
    return SparkRole(
        without_none({"name": name, **document}), cores if isinstance(cores, int) and cores > 0 else 1, memory
    )


def _pod(spec: Fields, data: Mapping[str, Any]) -> Document:
    """The fields of the pod, in the spelling of Kubernetes."""
    found = {field: data[field] for field in _OF_POD if field in data}
    secrets = [{"name": name} for name in spec.sequence("imagePullSecrets")]
    shared = {"nodeSelector": spec.take("nodeSelector"), "imagePullSecrets": secrets}
    return {**shared, "securityContext": data.get("podSecurityContext"), **found}


def _container(spec: Fields, data: Mapping[str, Any]) -> Document:
    """The fields of the container, and all that have no effect."""
    found = {field: value for field, value in data.items() if field not in (*_OF_POD, *_ELSEWHERE)}
    variables, env = data.get("envVars"), data.get("env")
    if isinstance(variables, dict) and isinstance(env, list | None):
        env = [*(env or ()), *({"name": name, "value": value} for name, value in variables.items())]
    return {"image": spec.take("image"), **found, "env": env}


def _cpu(reading: ManifestReader, own: Fields, target: str) -> object:
    name = "coreRequest" if "coreRequest" in own else "cores"
    request = reading.take(own, name, target)
    request = 1 if request is None else request
    reading.unless(own, "coreLimit", (request, str(request)), translate(_LIMIT))
    return request


def _overhead(spec: Fields, own: Fields, memory: int) -> int:
    """In MiB: as it says, or a part of the memory."""
    stated = memory_sizes.read(own, "memoryOverhead", unit="m")
    part: Any = spec.take("memoryOverheadFactor")
    try:
        part = _OVERHEADS.get(str(spec.take("type")), _OVERHEAD) if part is None else float(part)
    except (TypeError, ValueError):
        part = -1.0
    if not 0.0 <= part <= _MOST_OVERHEAD:
        message = translate(
            "Must be a number, for example 0.1, not {given}.", given=quote(spec.take("memoryOverheadFactor"))
        )
        spec.findings.problem(spec.at("memoryOverheadFactor"), message)
        part = _OVERHEAD
    return max(_LEAST_OVERHEAD_MIB, ceil(memory * part)) if stated is None else stated


def _cards(reading: ManifestReader, gpu: Fields, target: str) -> Iterator[tuple[str, object]]:
    name = gpu.text("name")
    if name:
        yield name, reading.take(gpu, "quantity", join(target, name))
    gpu.close()
