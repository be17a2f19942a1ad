"""Reads and writes pod templates, which are Kubernetes' own in every kind of manifest."""

import re
from collections.abc import Collection
from typing import Any

from hekla.domain.formats import annotations as words
from hekla.domain.formats import autoscaling, placement, runtime_settings, volumes, writing
from hekla.domain.formats.fields import Fields
from hekla.domain.formats.files import Mounts
from hekla.domain.formats.reader import ManifestReader
from hekla.domain.jobspec import JobSpec
from hekla.domain.placement import pod_fields
from hekla.domain.pod_annotations import POD_ANNOTATIONS
from hekla.domain.task_spec import TaskSpec
from hekla.domain.translation import gettext_noop, translate
from hekla.domain.validation import join, quote

SCHEDULERS = ("volcano", "hekla")
OTHER_SCHEDULER = gettext_noop("the scheduler of the queue's cluster decides.")
_PORT = re.compile(r"(?P<name>[^=\s]+)=(?P<number>\d{1,5})", re.ASCII)


def read(
    reading: ManifestReader,
    template: Fields,
    target: str,
    *,
    main: str = "",
    restarts: Collection[str] = ("Never",),
) -> dict[str, Any]:
    """The fields of the task at `target` in a pod template.

    Of several containers, the one named `main` counts, else the first. `restarts`: the restart policies that the
    manifest's kind handles itself.
    """
    metadata, pod = template.fields("metadata"), template.fields("spec")
    annotations = metadata.mapping("annotations")
    for field, name in (("environment", words.ENVIRONMENT), ("success_policy", words.SUCCESS_POLICY)):
        reading.findings.origins[join(target, field)] = f"{metadata.at('annotations')}.{name}"
    reading.findings.origins[join(target, "annotations")] = metadata.at("annotations")
    document = {
        "annotations": _scheduling(annotations) or None,
        "environment": annotations.pop(words.ENVIRONMENT, reading.environment),
        "ports": _ports(reading, metadata, annotations, join(target, "ports")),
        "success_policy": annotations.pop(words.SUCCESS_POLICY, None),
        "autoscaling": autoscaling.read_annotation(
            reading, annotations, metadata.at("annotations"), join(target, "autoscaling")
        ),
        "labels": placement.read_labels(metadata, join(target, "labels")) or None,
    }
    reading.close_metadata(metadata, annotations)
    policy = pod.take("restartPolicy")
    if policy is not None and policy not in restarts:
        why = translate("programs do not restart inside a pod. A policy can restart the pod, its task or the job.")
        reading.findings.not_honoured(pod.at("restartPolicy"), why)
    document |= _pod(reading, pod, target, main)
    template.close()
    return document


def _scheduling(annotations: dict[str, Any]) -> dict[str, Any]:
    """Take the annotations that plugins of the scheduler read."""
    return {name: annotations.pop(name) for name in sorted(POD_ANNOTATIONS & annotations.keys())}


def _ports(
    reading: ManifestReader, metadata: Fields, annotations: dict[str, Any], target: str
) -> dict[str, int] | None:
    """The ports that the task publishes. Ports that containers declare are not meant for users."""
    text = annotations.pop(words.PORTS, None)
    reading.findings.origins[target] = path = f"{metadata.at('annotations')}.{words.PORTS}"
    pairs = [_PORT.fullmatch(part.strip()) for part in text.split(",")] if isinstance(text, str) and text else []
    ports = {pair["name"]: int(pair["number"]) for pair in pairs if pair}
    if text not in (None, "") and not (pairs and len(ports) == len(pairs)):
        message = translate(
            "Must be ports with unique names, for example board=6006,metrics=9090, not {given}.", given=quote(text)
        )
        reading.findings.problem(path, message)
    return ports or None


def _pod(reading: ManifestReader, pod: Fields, target: str, main: str) -> dict[str, Any]:
    mounts = Mounts(pod, reading.companions, reading.volumes, reading.mounts)
    containers = pod.list_of_fields("containers")
    if not containers:
        reading.findings.problem(pod.at("containers"), translate("A container is required."))
    chosen = next((one for one in containers if one.take("name") == main), next(iter(containers), None))
    for other in containers:
        if other is not chosen:
            why = translate("a pod runs only one container: the main one, or the first.")
            reading.findings.not_honoured(other.path, why)
    reading.unless(pod, "schedulerName", SCHEDULERS, translate(OTHER_SCHEDULER))
    why = translate(
        "a deadline applies to the whole job: set it in the job's field of the same name or in its annotation {name}.",
        name=words.DEADLINE,
    )
    reading.unless(pod, "activeDeadlineSeconds", (), why)
    document = {
        "node_selector": reading.take(pod, "nodeSelector", join(target, "node_selector")),
        **placement.read(pod, target),
        "grace_seconds": reading.take(pod, "terminationGracePeriodSeconds", join(target, "grace_seconds")),
    }
    if chosen is None:
        document["command"] = ["?"]
    else:
        document |= runtime_settings.read(reading, pod, chosen, target)
        document |= container(reading, chosen, target, mounts)
    pod.close()
    return document


def container(
    reading: ManifestReader,
    fields: Fields,
    target: str,
    mounts: Mounts | None = None,
    *,
    resources: str = "resources",
) -> dict[str, Any]:
    """The task's fields in a container, or in an object with the same fields. `resources`: the field of its amounts."""
    fields.ignore("name")
    command, arguments = _command(reading, fields, target)
    document = {
        "command": command or None,
        "args": arguments or None,
        "env": _env(reading, fields, join(target, "env")),
        "resources": _resources(reading, fields.fields(resources), join(target, "resources")),
        "image": reading.take(fields, "image", join(target, "image")),
    }
    if mounts:
        working_dir = reading.take(fields, "workingDir", join(target, "working_dir"))
        document["working_dir"] = mounts.settle(fields, working_dir, [*command, *arguments], target)
        document["volume_mounts"] = mounts.volume_mounts or None
    fields.close()
    return document


def _command(reading: ManifestReader, container: Fields, target: str) -> tuple[list[Any], list[Any]]:
    """The command with its arguments; without a command, only the arguments of the image's own."""
    command, arguments = container.sequence("command"), container.sequence("args")
    reading.findings.origins[join(target, "command")] = container.at("command")
    reading.findings.origins[join(target, "args")] = container.at("args")
    for place in range(len(arguments)) if command else ():
        reading.findings.origins[join(target, "command", len(command) + place)] = f"{container.at('args')}[{place}]"
    return ([*command, *arguments], []) if command else ([], arguments)


def _env(reading: ManifestReader, container: Fields, target: str) -> dict[str, Any]:
    reading.findings.origins[target] = container.at("env")
    env = {}
    for variable in container.list_of_fields("env"):
        name, value = variable.text("name"), variable.take("value")
        reading.findings.origins[join(target, name)] = variable.at("value")
        if not name:
            reading.findings.problem(variable.at("name"), translate("A variable needs a name."))
        elif "valueFrom" not in variable:
            env[name] = "" if value is None else value
        variable.close()
    return env


def _resources(reading: ManifestReader, resources: Fields, target: str) -> dict[str, Any]:
    """The requests. A limit without a request is also the request, as in Kubernetes."""
    requests, limits = resources.mapping("requests"), resources.mapping("limits")
    for name, limit in limits.items():
        reading.findings.origins[join(target, name)] = f"{resources.at('limits')}.{name}"
        if name in requests and str(requests[name]) != str(limit):
            why = translate("the request is also the limit.")
            reading.findings.not_honoured(f"{resources.at('limits')}.{name}", why)
    for name in requests:
        reading.findings.origins[join(target, name)] = f"{resources.at('requests')}.{name}"
    if resources.path.endswith(".resources"):
        resources.ignore("claims")  # `runtime_settings` reads them
    resources.close()
    return {**limits, **requests}


def write(
    task: TaskSpec, spec: JobSpec, *, name: str = "", restart: str | None = "Never", port: tuple[str, int] | None = None
) -> dict[str, Any]:
    """The pod template of a task. `name`: the container's, by default the task's; `port`: one on which it listens."""
    annotations = writing.without_empty(
        **task.annotations,
        **{
            words.ENVIRONMENT: task.environment or None,
            words.PORTS: _written_ports(task),
            words.AUTOSCALING: autoscaling.written_annotation(task),
        },
    )
    metadata = writing.without_empty(annotations=annotations, labels=dict(task.labels))
    pod = writing.without_empty(
        restartPolicy=restart,
        terminationGracePeriodSeconds=task.grace_seconds,
        **pod_fields(task),
        **task.runtime_settings.pod_fields(),
        containers=[_written_container(task, spec, name or task.name, port)],
        volumes=[*([writing.files_volume(spec)] if spec.files else []), *volumes.dump_volumes(task, spec)],
    )
    return writing.without_empty(metadata=metadata, spec=pod)


def _written_ports(task: TaskSpec) -> str | None:
    return ",".join(f"{name}={number}" for name, number in task.ports.items()) or None


def _written_container(task: TaskSpec, spec: JobSpec, name: str, port: tuple[str, int] | None) -> dict[str, Any]:
    settings = task.runtime_settings.container_fields()
    listens = [{"name": port[0], "containerPort": port[1]}] if port else []
    return writing.without_empty(
        name=name,
        image=task.image or None,
        workingDir=_working_dir(task, spec),
        command=list(task.command),
        args=list(task.args),
        env=variables(task),
        ports=[*listens, *settings.get("ports", ())],
        securityContext=settings.get("securityContext"),
        resources={**amounts(task), **task.runtime_settings.resource_fields()},
        volumeMounts=[*([writing.files_mount(spec)] if spec.files else []), *volumes.dump_mounts(task.volume_mounts)],
    )


def variables(task: TaskSpec) -> list[dict[str, str]]:
    """A task's variables in the form of a container."""
    return [{"name": name, "value": value} for name, value in task.env.items()]


def amounts(task: TaskSpec) -> dict[str, Any]:
    """The requests of a replica, which are also its limits."""
    return writing.without_empty(requests=dict(task.resources), limits=dict(task.resources))


def _working_dir(task: TaskSpec, spec: JobSpec) -> str | None:
    """Without files, the pod's own folder needs no name; with files, it is their mount path."""
    if not spec.files or task.working_dir.startswith("/"):
        return task.working_dir or None
    return f"{writing.folder(spec)}/{task.working_dir}".rstrip("/")
