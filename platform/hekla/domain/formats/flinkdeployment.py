"""FlinkDeployments (`flink.apache.org/v1beta1`): a job manager and its task managers as one gang.

There are as many task managers as the parallelism needs slots, unless `replicas` says it. With a `job` its program
runs in the job manager, and the job completes with it; without one the cluster accepts programs until it is ended. A
task manager that fails restarts. When the job manager fails, the job ends: Flink itself restarts a failed program.
"""

import shlex
from collections.abc import Iterator, Mapping
from typing import Any

from hekla.domain.formats import annotations, memory_sizes, pods
from hekla.domain.formats.base import Format
from hekla.domain.formats.fields import Fields
from hekla.domain.formats.reader import ManifestReader, without_none
from hekla.domain.frameworks.flink import start_job_manager, start_task_manager
from hekla.domain.task_spec import MAX_RETRY
from hekla.domain.translation import gettext_noop, translate
from hekla.domain.validation import join, quote

Document = dict[str, Any]

_MANAGERS = ("jobManager", "taskManager")
_IN_PODS = ("Always", "OnFailure", "Never")
_CONTAINER = "flink-main-container"
_SLOTS, _PORT = "taskmanager.numberOfTaskSlots", "jobmanager.rpc.port"
_OURS = ("kubernetes.", "jobmanager.rpc.address", "jobmanager.memory.process.size", "taskmanager.memory.process.size")
_LIBRARY = "/opt/flink/usrlib"
_LOCAL = "local://"
_USUAL_MIB = {"jobManager": 1600, "taskManager": 1728}
"""The memory of Flink's default configuration."""
_ONE_MANAGER = gettext_noop("A job has one job manager. Standby job managers are not supported.")
_IMAGE_ONLY = gettext_noop("Must be a file in the image, for example local:///opt/flink/usrlib/job.jar, not {given}.")
_PLATFORM = gettext_noop("the platform creates the pods and connects them.")
_TEMPLATE = gettext_noop("{manager} has a pod template of its own, which is not merged with this one.")
_LIMIT = gettext_noop("Flink restarts its task managers without a limit. Here a job restarts at most {most} times.")
_STOPPED = gettext_noop("a submitted job starts as soon as it fits.")


def _read(reading: ManifestReader, manifest: Fields) -> Document:
    more = {"queue": annotations.QUEUE, "priority_class": annotations.PRIORITY_CLASS}
    document = reading.head(manifest.fields("metadata"), **more, active_deadline_seconds=annotations.DEADLINE)
    spec = manifest.fields("spec")
    spec.ignore("flinkVersion", "mode", "restartNonce")
    job, settings = spec.fields("job"), _settings(reading, spec.fields("flinkConfiguration"))
    manager, workers = (_task(reading, spec, name, place) for place, name in enumerate(_MANAGERS))
    manager |= _program(job, settings, manager.pop("size"))
    workers["command"] = start_task_manager(*_options(settings | workers.pop("size")))
    workers |= _replicas(reading, spec, job, settings)
    workers["policies"] = [{"events": ["PodFailed"], "action": "RestartPod"}]
    job.close()
    reading.findings.origins |= {"max_retry": spec.path, "tasks": spec.path}
    reading.findings.remark("max_retry", translate(_LIMIT, most=MAX_RETRY))
    spec.close()
    port = {"port": settings[_PORT]} if _PORT in settings else {}
    plugins = reading.plugin("flink", port, spec.at("flinkConfiguration"))
    return {**document, "tasks": [manager, workers], "plugins": plugins, "max_retry": MAX_RETRY}


def _settings(reading: ManifestReader, configuration: Fields) -> dict[str, str]:
    """The configuration, without what the platform sets."""
    found = {}
    for name in configuration.names():
        value = configuration.take(name)
        if isinstance(value, list | dict):
            configuration.findings.problem(
                configuration.at(name), translate("Must be a string, not {given}.", given=quote(value))
            )
        elif name.startswith(_OURS):
            reading.findings.not_honoured(configuration.at(name), translate(_PLATFORM))
        else:
            found[name] = str(value).lower() if isinstance(value, bool) else str(value)
    return found


def _options(settings: Mapping[str, str]) -> Iterator[str]:
    """The configuration as arguments for the shell."""
    return (f"-D{shlex.quote(f'{name}={value}')}" for name, value in settings.items())


def _task(reading: ManifestReader, spec: Fields, name: str, place: int) -> Document:
    """The task of a role; `size` is the setting with the memory of its process."""
    own, target = spec.fields(name), join("tasks", place)
    reading.findings.origins[target] = own.path
    resource = own.fields("resource")
    memory = memory_sizes.read(resource, "memory") or _USUAL_MIB[name]
    amounts = {"cpu": reading.take(resource, "cpu", join(target, "resources", "cpu")), "memory": f"{memory}Mi"}
    reading.findings.origins[join(target, "resources", "memory")] = resource.at("memory")
    document = pods.read(reading, _template(reading, spec, own), target, main=_CONTAINER, restarts=_IN_PODS)
    amounts = {**document.get("resources", {}), **without_none({"cpu": 1, **without_none(amounts)})}
    own.ignore("replicas")
    resource.close()
    own.close()
    document.pop("args", None)
    size = {f"{name.lower()}.memory.process.size": f"{memory}m"}
    return without_none({**document, "name": name.lower(), "resources": amounts, "size": size})


def _template(reading: ManifestReader, spec: Fields, own: Fields) -> Fields:
    """The pod template of a role, or of all, with the image in its container."""
    source = own if "podTemplate" in own else spec
    if source is own and "podTemplate" in spec:
        why = translate(_TEMPLATE, manager=own.path)
        reading.findings.not_honoured(spec.at("podTemplate"), why)
    template, image = source.fields("podTemplate"), spec.take("image")
    spec.ignore("podTemplate")
    data = {field: template.take(field) for field in template.names() if field not in ("apiVersion", "kind")}
    pod = template.fields("spec")
    fields = {field: pod.take(field) for field in pod.names()}
    containers = fields.get("containers") or [{"name": _CONTAINER}]
    if isinstance(containers, list):
        containers = [{"image": image, **one} if isinstance(one, dict) else one for one in containers]
    return Fields({**data, "spec": {**fields, "containers": containers}}, template.path, template.findings)


def _replicas(reading: ManifestReader, spec: Fields, job: Fields, settings: dict[str, str]) -> Document:
    """The number of task managers. Also refuses several job managers."""
    manager, workers = (spec.fields(name) for name in _MANAGERS)
    if manager.take("replicas") not in (None, 1):
        spec.findings.problem(manager.at("replicas"), translate(_ONE_MANAGER))
    parallelism, slots = job.take("parallelism"), settings.get(_SLOTS, "1")
    reading.findings.origins["tasks.1.replicas"] = job.at("parallelism")
    if "replicas" in workers:
        return {"replicas": reading.take(workers, "replicas", "tasks.1.replicas")}
    if not (slots.isascii() and slots.isdigit() and int(slots[:9])):
        message = translate("Must be a number of slots, for example 2, not {given}.", given=quote(slots))
        spec.findings.problem(f"{spec.at('flinkConfiguration')}.{_SLOTS}", message)
    elif isinstance(parallelism, int):
        return {"replicas": -(-parallelism // int(slots[:9]))}
    return {"replicas": 1 if parallelism is None else parallelism}


def _program(job: Fields, settings: dict[str, str], size: dict[str, str]) -> Document:
    """The command of the job manager and its policies: with a job it runs the program and ends with it."""
    failed = {"events": ["PodFailed"], "action": "TerminateJob"}
    if not job.names():
        return {"command": start_job_manager("jobmanager.sh", *_options(settings | size)), "policies": [failed]}
    job.ignore("upgradeMode")
    if job.take("state") not in (None, "running"):
        job.findings.not_honoured(job.at("state"), translate(_STOPPED))
    words = ["--job-classname", job.text("entryClass")] if "entryClass" in job else []
    words += ["--fromSavepoint", job.text("initialSavepointPath")] if "initialSavepointPath" in job else []
    words += ["--allowNonRestoredState"] if job.take("allowNonRestoredState") is True else []
    if (parallelism := job.take("parallelism")) is not None:
        settings = {**settings, "parallelism.default": str(parallelism)}
    words += map(str, job.sequence("args"))
    more = [*_options(settings | size), *([shlex.join(words)] if words else [])]
    return {
        "command": start_job_manager("standalone-job.sh", *more, before=_link(job)),
        "policies": [failed, {"events": ["TaskCompleted"], "action": "CompleteJob"}],
    }


def _link(job: Fields) -> str:
    """The command that puts the program where Flink looks for it; empty if it is there."""
    address = job.text("jarURI")
    path = address.removeprefix(_LOCAL)
    if not address:
        return ""
    if path == address or not path.startswith("/"):
        job.findings.problem(job.at("jarURI"), translate(_IMAGE_ONLY, given=quote(address)))
    if path.startswith(f"{_LIBRARY}/"):
        return ""
    return f"mkdir -p {_LIBRARY} && ln -sf {shlex.quote(path)} {_LIBRARY}/"


FLINKDEPLOYMENT = Format("flinkdeployment", "flink.apache.org/v1beta1", "FlinkDeployment", _read)
