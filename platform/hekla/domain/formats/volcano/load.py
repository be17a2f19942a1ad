"""Reading a Volcano Job."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hekla.domain import frameworks
from hekla.domain.errors import Invalid, Problem
from hekla.domain.formats import yaml_text
from hekla.domain.formats.fields import Fields, Findings
from hekla.domain.formats.volcano import words
from hekla.domain.formats.volcano.files import ConfigMaps, Mounts
from hekla.domain.jobspec import JobSpec
from hekla.domain.validation import join, shown

_DURATION = re.compile(r"(?:(?P<h>\d{1,6})h)?(?:(?P<m>\d{1,6})m)?(?:(?P<s>\d{1,9})s)?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Loaded:
    """The job that a manifest describes, and a sentence for everything in it that has no effect here."""

    spec: JobSpec
    warnings: tuple[str, ...]


def load(text: str | bytes) -> Loaded:
    """The job in a YAML (or JSON) stream. Raises Invalid with every problem and its path in the manifest."""
    findings = Findings()
    job, config_maps = _sorted_out(yaml_text.read(text), findings)
    document = _Reader(config_maps, findings).job(Fields(job, "", findings))
    try:
        spec = JobSpec.parse(document)
    except Invalid as error:
        findings.raise_any(error)
        raise
    findings.raise_any()
    for remark in frameworks.remarks(spec):
        findings.remark(remark.path, remark.message)
    return Loaded(spec, findings.warnings())


def _sorted_out(documents: list[Any], findings: Findings) -> tuple[Any, ConfigMaps]:
    """The one Job of a stream, and its ConfigMaps; a sentence where there is no such Job."""
    jobs, maps = [], ConfigMaps(findings)
    for number, document in enumerate(documents, start=1):
        kind = document.get("kind") if isinstance(document, dict) else None
        if not isinstance(document, dict):
            _refuse("", f"Document {number} must be a mapping that begins with apiVersion, not {shown(document)}.")
        elif kind == "ConfigMap":
            maps.add(document)
        elif kind == "Job" or "kind" not in document:
            jobs.append(document)
        else:
            findings.not_honoured(f"document {number}", f"a {shown(kind)} is nothing that can be submitted.")
    if len(jobs) != 1:
        found = f"{len(jobs)} Jobs" if jobs else "no Job"
        _refuse("", f"The text holds {found}; one is expected (apiVersion: {words.API_VERSION}, kind: Job).")
    return jobs[0], maps


def _refuse(path: str, message: str) -> None:
    raise Invalid([Problem(path, message)])


class _Reader:
    """Makes the JSON-like document of a JobSpec; leaves the judging of values to `JobSpec.parse`."""

    def __init__(self, config_maps: ConfigMaps, findings: Findings) -> None:
        self.config_maps, self.findings = config_maps, findings
        self.commands: Mapping[str, tuple[str, ...]] = {}

    def job(self, job: Fields) -> dict[str, Any]:
        self._expect_volcano(job)
        job.ignore("status")
        metadata, spec = job.fields("metadata"), job.fields("spec")
        annotations = metadata.mapping("annotations")
        document = {
            "name": self._take(metadata, "name", "name"),
            "kind": annotations.pop(words.KIND, None),
            "description": annotations.pop(words.DESCRIPTION, None),
            "priority": self._number(metadata, annotations, words.PRIORITY),
            "annotations": {name: annotations.pop(name) for name in words.SCHEDULING if name in annotations},
            **self._job_fields(spec),
        }
        self.findings.origins["annotations"] = metadata.at("annotations")
        self.commands = frameworks.commands(document["plugins"])
        environment = annotations.pop(words.ENVIRONMENT, None)
        self._metadata(metadata, annotations)
        self.findings.origins["tasks"] = spec.at("tasks")
        tasks = [self._task(task, place, environment) for place, task in enumerate(spec.list_of_fields("tasks"))]
        spec.close()
        job.close()
        self.findings.origins["files"] = "data"
        return _given({**document, "tasks": tasks, "files": self.config_maps.files})

    def _expect_volcano(self, job: Fields) -> None:
        version, kind = job.text("apiVersion"), job.text("kind")
        if version != words.API_VERSION:
            hint = " (this is a Job of Kubernetes itself)" if version == "batch/v1" else ""
            self.findings.problem("apiVersion", f"This must be {words.API_VERSION}, not {shown(version)}{hint}.")
        if kind != "Job":
            self.findings.problem("kind", f"This must be Job, not {shown(kind)}.")

    def _metadata(self, metadata: Fields, annotations: dict[str, Any]) -> None:
        if metadata.take("namespace"):
            why = "a job belongs to the tenant for which it is submitted."
            self.findings.not_honoured(metadata.at("namespace"), why)
        metadata.ignore("creationTimestamp", "resourceVersion", "uid", "generation", "managedFields", "selfLink")
        metadata.close()
        for name in annotations:
            self.findings.not_honoured(f"{metadata.at('annotations')}.{name}")

    def _job_fields(self, spec: Fields) -> dict[str, Any]:
        scheduler = spec.take("schedulerName")
        if scheduler and scheduler not in words.SCHEDULERS:
            self.findings.not_honoured(spec.at("schedulerName"), "the scheduler of the queue's cluster decides.")
        if spec.take("priorityClassName"):
            why = f"priority classes belong to a Kubernetes cluster; write a number as annotation {words.PRIORITY}."
            self.findings.not_honoured(spec.at("priorityClassName"), why)
        return {
            "queue": self._take(spec, "queue", "queue"),
            "min_available": self._take(spec, "minAvailable", "min_available", zero_is_default=True),
            "min_success": self._take(spec, "minSuccess", "min_success"),
            "max_retry": self._take(spec, "maxRetry", "max_retry", zero_is_default=True),
            "ttl_seconds_after_finished": self._take(spec, "ttlSecondsAfterFinished", "ttl_seconds_after_finished"),
            "policies": self._policies(spec, "policies"),
            "plugins": self._plugins(spec),
        }

    def _plugins(self, spec: Fields) -> dict[str, Any]:
        self.findings.origins["plugins"] = spec.at("plugins")
        return {name: [] if arguments is None else arguments for name, arguments in spec.mapping("plugins").items()}

    def _policies(self, owner: Fields, target: str) -> list[dict[str, Any]]:
        self.findings.origins[target] = owner.at("policies")
        return [
            self._policy(policy, join(target, place)) for place, policy in enumerate(owner.list_of_fields("policies"))
        ]

    def _policy(self, policy: Fields, target: str) -> dict[str, Any]:
        event, events = policy.take("event"), policy.sequence("events")
        self.findings.origins[join(target, "events")] = policy.at("events")
        if event is not None:
            self.findings.origins[join(target, "events", 0)] = policy.at("event")
        document = {
            "events": [*([event] if event is not None else []), *events],
            "exit_code": self._take(policy, "exitCode", join(target, "exit_code")),
            "action": self._take(policy, "action", join(target, "action")),
            "timeout_seconds": self._seconds(policy, "timeout", join(target, "timeout_seconds")),
        }
        policy.close()
        return _given(document)

    def _task(self, task: Fields, place: int, environment: object) -> dict[str, Any]:
        target = join("tasks", place)
        self.findings.origins[target] = task.path
        document = {
            "name": self._take(task, "name", join(target, "name")) or f"default{place}",
            "replicas": self._take(task, "replicas", join(target, "replicas")),
            "min_available": self._take(task, "minAvailable", join(target, "min_available")),
            "max_retry": self._take(task, "maxRetry", join(target, "max_retry"), zero_is_default=True),
            "depends_on": self._depends_on(task, join(target, "depends_on")),
            "policies": self._policies(task, join(target, "policies")),
        }
        self._partitions(task, target, document)
        template = task.fields("template")
        metadata, pod = template.fields("metadata"), template.fields("spec")
        annotations = metadata.mapping("annotations")
        self.findings.origins[join(target, "environment")] = f"{metadata.at('annotations')}.{words.ENVIRONMENT}"
        document["environment"] = annotations.pop(words.ENVIRONMENT, environment)
        self._metadata(metadata, annotations)
        document |= self._pod(pod, target, commanded=document["name"] in self.commands)
        template.close()
        task.close()
        return _given(document)

    def _partitions(self, task: Fields, target: str, document: dict[str, Any]) -> None:
        """A partition is restarted as a whole; so many of them as are needed are a number of pods."""
        policy = task.fields("partitionPolicy")
        total, least = policy.take("totalPartitions"), policy.take("minPartitions")
        size = document["partition_size"] = self._take(policy, "partitionSize", join(target, "partition_size"))
        replicas = 1 if document["replicas"] is None else document["replicas"]
        if isinstance(size, int) and isinstance(total, int) and replicas != total * size:
            message = f"{total} partitions of {size} are {total * size} replicas, not {shown(replicas)}."
            self.findings.problem(policy.path, message)
        if least and isinstance(least, int) and isinstance(size, int):
            why = f"as partitions: {least * size} pods are the task's minimum, and they are placed one by one."
            self.findings.not_honoured(policy.at("minPartitions"), why)
            if document["min_available"] is None:
                document["min_available"] = least * size
        policy.close()

    def _depends_on(self, task: Fields, target: str) -> dict[str, Any] | None:
        """Without names there is nothing to wait for."""
        dependency = task.fields("dependsOn")
        self.findings.origins[target] = dependency.path
        document = {
            "tasks": self._take(dependency, "name", join(target, "tasks")),
            "iteration": self._take(dependency, "iteration", join(target, "iteration")),
        }
        dependency.close()
        return _given(document) if document["tasks"] else None

    def _pod(self, pod: Fields, target: str, *, commanded: bool) -> dict[str, Any]:
        mounts = Mounts(pod, self.config_maps)
        containers = pod.list_of_fields("containers")
        if not containers:
            self.findings.problem(pod.at("containers"), "A container must be given: it says what to run.")
        for other in containers[1:]:
            self.findings.not_honoured(other.path, "only the first container of a pod runs.")
        policy = pod.take("restartPolicy")
        if policy not in (None, "Never"):
            why = "a program is not restarted in its pod; a policy can restart the pod, its task or the job."
            self.findings.not_honoured(pod.at("restartPolicy"), why)
        pod.ignore("schedulerName")
        document = {
            "node_selector": self._take(pod, "nodeSelector", join(target, "node_selector")),
            "grace_seconds": self._take(pod, "terminationGracePeriodSeconds", join(target, "grace_seconds")),
        }
        first = (
            self._container(containers[0], target, mounts, commanded=commanded) if containers else {"command": ["?"]}
        )
        document |= first
        pod.close()
        return document

    def _container(self, container: Fields, target: str, mounts: Mounts, *, commanded: bool) -> dict[str, Any]:
        container.ignore("name", "ports")
        command = self._command(container, join(target, "command"), commanded=commanded)
        document = {
            "command": command or None,
            "env": self._env(container, join(target, "env")),
            "resources": self._resources(container, join(target, "resources")),
            "image": self._take(container, "image", join(target, "image")),
            "working_dir": self._take(container, "workingDir", join(target, "working_dir")),
        }
        document["working_dir"] = mounts.settle(container, document["working_dir"], command)
        container.close()
        return document

    def _command(self, container: Fields, target: str, *, commanded: bool) -> list[Any]:
        """What the container starts; nothing where a plugin says it."""
        command, arguments = container.sequence("command"), container.sequence("args")
        self.findings.origins[target] = container.at("command")
        for place in range(len(arguments)):
            self.findings.origins[join(target, len(command) + place)] = f"{container.at('args')}[{place}]"
        if commanded and not command and not arguments:
            return []
        if "command" not in container:
            message = "A command must be given; the one that the image may have of its own is not known here."
            self.findings.problem(container.at("command"), message)
        return [*command, *arguments] or ["?"]

    def _env(self, container: Fields, target: str) -> dict[str, Any]:
        self.findings.origins[target] = container.at("env")
        env = {}
        for variable in container.list_of_fields("env"):
            name, value = variable.text("name"), variable.take("value")
            self.findings.origins[join(target, name)] = variable.at("value")
            if not name:
                self.findings.problem(variable.at("name"), "A variable needs a name.")
            elif "valueFrom" not in variable:
                env[name] = "" if value is None else value
            variable.close()
        return env

    def _resources(self, container: Fields, target: str) -> dict[str, Any]:
        """What is requested; of what is only limited, the limit, as in Kubernetes."""
        resources = container.fields("resources")
        requests, limits = resources.mapping("requests"), resources.mapping("limits")
        for name, limit in limits.items():
            self.findings.origins[join(target, name)] = f"{resources.at('limits')}.{name}"
            if name in requests and str(requests[name]) != str(limit):
                self.findings.not_honoured(f"{resources.at('limits')}.{name}", "what is requested is also the limit.")
        for name in requests:
            self.findings.origins[join(target, name)] = f"{resources.at('requests')}.{name}"
        resources.close()
        return {**limits, **requests}

    def _take(self, fields: Fields, name: str, target: str, *, zero_is_default: bool = False) -> Any:  # noqa: ANN401
        """A field's value as it stands, with its path remembered for what a JobSpec may say about it."""
        self.findings.origins[target] = fields.at(name)
        value = fields.take(name)
        return None if zero_is_default and value == 0 and not isinstance(value, bool) else value

    def _number(self, metadata: Fields, annotations: dict[str, Any], name: str) -> object:
        """A whole number in an annotation, which is text."""
        text = annotations.pop(name, None)
        self.findings.origins["priority"] = path = f"{metadata.at('annotations')}.{name}"
        if text is None or (isinstance(text, str) and re.fullmatch(r"-?\d{1,10}", text, re.ASCII)):
            return None if text is None else int(text)
        self.findings.problem(path, f"This must be a whole number in quotes, not {shown(text)}.")
        return None

    def _seconds(self, policy: Fields, name: str, target: str) -> int | None:
        """A duration as manifests write it: 1h30m, 90s."""
        self.findings.origins[target] = policy.at(name)
        text = policy.text(name)
        match = _DURATION.fullmatch(text)
        if match is None:
            message = f"This must be a duration such as 90s, 10m or 1h30m, not {shown(text)}."
            self.findings.problem(policy.at(name), message)
            return None
        return sum(int(match[unit] or 0) * size for unit, size in (("h", 3600), ("m", 60), ("s", 1))) or None


def _given(document: dict[str, Any]) -> dict[str, Any]:
    """Without the fields that the manifest leaves to their defaults."""
    return {name: value for name, value in document.items() if value is not None}
