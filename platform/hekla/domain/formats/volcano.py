"""Volcano Jobs (`batch.volcano.sh/v1alpha1`): the kind that holds every job completely.

Annotations hold what it has no field for: on the Job `hekla.io/kind`, `hekla.io/description`, `hekla.io/priority`,
`hekla.io/active-deadline-seconds`, `hekla.io/keep-failed-seconds`, `hekla.io/min-resources`; on the Job or a pod
template `hekla.io/environment`; on a pod template `hekla.io/ports`, `hekla.io/success-policy` and
`hekla.io/autoscaling`. Annotations for plugins of the scheduler (`annotations.SCHEDULING`) are kept.
"""

from typing import Any

from hekla.domain.formats import annotations, placement, pods
from hekla.domain.formats.base import Format
from hekla.domain.formats.fields import Fields
from hekla.domain.formats.reader import ManifestReader, without_none
from hekla.domain.formats.writing import deadline, metadata, min_resources, without_empty
from hekla.domain.jobspec import JobSpec
from hekla.domain.numa import TopologyPolicy
from hekla.domain.policies import LifecyclePolicy
from hekla.domain.task_spec import Dependency, SuccessPolicy, TaskSpec
from hekla.domain.translation import translate
from hekla.domain.validation import join, quote
from hekla.lib import durations


def _read(reading: ManifestReader, job: Fields) -> dict[str, Any]:
    spec = job.fields("spec")
    more = {"active_deadline_seconds": annotations.DEADLINE, "min_resources": annotations.MIN_RESOURCES}
    head = reading.head(job.fields("metadata"), **more)
    document = {**head, "min_resources": _amounts(reading, head["min_resources"]), **_job_fields(reading, spec)}
    reading.findings.origins["tasks"] = spec.at("tasks")
    reading.mounts = [
        reading.volumes.of_job(volume, place) for place, volume in enumerate(spec.list_of_fields("volumes"))
    ]
    tasks = [_task(reading, task, place) for place, task in enumerate(spec.list_of_fields("tasks"))]
    spec.close()
    return {**document, "tasks": tasks}


def _job_fields(reading: ManifestReader, spec: Fields) -> dict[str, Any]:
    reading.unless(spec, "schedulerName", pods.SCHEDULERS, translate(pods.OTHER_SCHEDULER))
    return {
        "queue": reading.take(spec, "queue", "queue"),
        "priority_class": reading.take(spec, "priorityClassName", "priority_class"),
        "min_available": reading.take(spec, "minAvailable", "min_available", zero_is_default=True),
        "min_success": reading.take(spec, "minSuccess", "min_success"),
        "max_retry": reading.take(spec, "maxRetry", "max_retry", zero_is_default=True),
        "ttl_seconds_after_finished": reading.take(spec, "ttlSecondsAfterFinished", "ttl_seconds_after_finished"),
        "network_topology": placement.read_network_topology(spec, "network_topology"),
        "policies": _policies(reading, spec, "policies"),
        "plugins": _plugins(reading, spec),
    }


def _amounts(reading: ManifestReader, text: object) -> dict[str, str] | None:
    """Amounts of resources in an annotation."""
    if text is None:
        return None
    pairs = [part.strip().partition("=") for part in text.split(",")] if isinstance(text, str) else []
    if not pairs or not all(name and amount for name, _equals, amount in pairs):
        message = translate(
            "Must be amounts of resources, for example cpu=4,memory=8Gi, not {given}.", given=quote(text)
        )
        reading.findings.problem(reading.findings.place_of("min_resources"), message)
        return None
    return {name: amount for name, _equals, amount in pairs}


def _plugins(reading: ManifestReader, spec: Fields) -> dict[str, Any]:
    reading.findings.origins["plugins"] = spec.at("plugins")
    plugins = spec.mapping("plugins").items()
    return {name: [] if arguments is None else arguments for name, arguments in plugins}


def _policies(reading: ManifestReader, owner: Fields, target: str) -> list[dict[str, Any]]:
    reading.findings.origins[target] = owner.at("policies")
    policies = enumerate(owner.list_of_fields("policies"))
    return [_policy(reading, policy, join(target, place)) for place, policy in policies]


def _policy(reading: ManifestReader, policy: Fields, target: str) -> dict[str, Any]:
    document = {
        "events": _events(reading, policy, join(target, "events")),
        "exit_code": reading.take(policy, "exitCode", join(target, "exit_code")),
        "action": reading.take(policy, "action", join(target, "action")),
        "timeout_seconds": _seconds(reading, policy, "timeout", join(target, "timeout_seconds")),
    }
    policy.close()
    return without_none(document)


def _events(reading: ManifestReader, policy: Fields, target: str) -> object:
    """The events in `event` and `events`; a single one may be text. The JobSpec judges every other value."""
    event, events = policy.take("event"), reading.take(policy, "events", target)
    if event is not None:
        reading.findings.origins[join(target, 0)] = policy.at("event")
    first, more = [] if event is None else [event], [events] if isinstance(events, str) else events
    return [*first, *(more or [])] if more is None or isinstance(more, list) else more


def _seconds(reading: ManifestReader, policy: Fields, name: str, target: str) -> int | None:
    """A duration as manifests write it: 1h30m, 90s."""
    reading.findings.origins[target] = policy.at(name)
    text = policy.text(name)
    found = durations.seconds(text) if text else 0.0
    if found is None or not found.is_integer():
        message = translate("Must be a duration, for example 90s, 10m or 1h30m, not {given}.", given=quote(text))
        reading.findings.problem(policy.at(name), message)
        return None
    return int(found) or None


def _task(reading: ManifestReader, task: Fields, place: int) -> dict[str, Any]:
    target = join("tasks", place)
    reading.findings.origins[target] = task.path
    name = reading.take(task, "name", join(target, "name")) or f"default{place}"
    document = {
        "name": name,
        "replicas": reading.take(task, "replicas", join(target, "replicas")),
        "min_available": reading.take(task, "minAvailable", join(target, "min_available")),
        "max_retry": reading.take(task, "maxRetry", join(target, "max_retry"), zero_is_default=True),
        "topology_policy": reading.take(task, "topologyPolicy", join(target, "topology_policy")) or None,
        "policies": _policies(reading, task, join(target, "policies")),
        "depends_on": _depends_on(reading, task.fields("dependsOn"), join(target, "depends_on")),
    }
    _partitions(reading, task.fields("partitionPolicy"), target, document)
    document |= pods.read(reading, task.fields("template"), target)
    task.close()
    return without_none(document)


def _partitions(reading: ManifestReader, policy: Fields, target: str, document: dict[str, Any]) -> None:
    """Read a partition policy. A partition restarts as a whole."""
    total = policy.take("totalPartitions")
    document["min_partitions"] = reading.take(
        policy, "minPartitions", join(target, "min_partitions"), zero_is_default=True
    )
    document["partition_topology"] = placement.read_network_topology(policy, join(target, "partition_topology"))
    size = document["partition_size"] = reading.take(policy, "partitionSize", join(target, "partition_size"))
    replicas = 1 if document["replicas"] is None else document["replicas"]
    if isinstance(size, int) and isinstance(total, int) and replicas != total * size:
        message = translate(
            "{total} partitions of {size} need {product} replicas, not {given}.",
            total=total,
            size=size,
            product=total * size,
            given=quote(replicas),
        )
        reading.findings.problem(policy.path, message)
    policy.close()


def _depends_on(reading: ManifestReader, dependency: Fields, target: str) -> dict[str, Any] | None:
    """None without names, since there is nothing to wait for."""
    reading.findings.origins[target] = dependency.path
    document = {
        "tasks": reading.take(dependency, "name", join(target, "tasks")),
        "iteration": reading.take(dependency, "iteration", join(target, "iteration")),
    }
    dependency.close()
    return without_none(document) if document["tasks"] else None


def _write(spec: JobSpec) -> dict[str, Any]:
    return {
        "metadata": metadata(spec, deadline(spec) | min_resources(spec)),
        "spec": without_empty(
            schedulerName="volcano",
            queue=spec.queue,
            priorityClassName=spec.priority_class or None,
            minAvailable=spec.min_available,
            minSuccess=spec.min_success,
            maxRetry=spec.max_retry,
            ttlSecondsAfterFinished=spec.ttl_seconds_after_finished,
            networkTopology=spec.network_topology.kubernetes_form() if spec.network_topology else None,
            policies=[_written_policy(policy) for policy in spec.policies],
            plugins={name: list(arguments) for name, arguments in spec.plugins.items()},
            tasks=[_written_task(task, spec) for task in spec.tasks],
        ),
    }


def _written_policy(policy: LifecyclePolicy) -> dict[str, Any]:
    names = [str(event) for event in policy.events]
    return without_empty(
        event=names[0] if len(names) == 1 else None,
        events=names if len(names) > 1 else [],
        exitCode=policy.exit_code,
        action=str(policy.action),
        timeout=f"{policy.timeout_seconds}s" if policy.timeout_seconds else None,
    )


def _written_task(task: TaskSpec, spec: JobSpec) -> dict[str, Any]:
    return without_empty(
        name=task.name,
        replicas=task.replicas,
        minAvailable=task.min_available,
        maxRetry=task.max_retry,
        topologyPolicy=str(task.topology_policy) if task.topology_policy is not TopologyPolicy.NONE else None,
        partitionPolicy=_written_partitions(task, task.partition_size) if task.partition_size else None,
        dependsOn=_written_dependency(task.depends_on) if task.depends_on else None,
        policies=[_written_policy(policy) for policy in task.policies],
        template=_written_template(task, spec),
    )


def _written_template(task: TaskSpec, spec: JobSpec) -> dict[str, Any]:
    template = pods.write(task, spec)
    if task.success_policy is not SuccessPolicy.ALL_REPLICAS:
        template.setdefault("metadata", {}).setdefault("annotations", {})[annotations.SUCCESS_POLICY] = str(
            task.success_policy
        )
    return template


def _written_partitions(task: TaskSpec, size: int) -> dict[str, Any]:
    return without_empty(
        totalPartitions=task.replicas // size,
        partitionSize=size,
        minPartitions=task.min_partitions,
        networkTopology=task.partition_topology.kubernetes_form() if task.partition_topology else None,
    )


def _written_dependency(dependency: Dependency) -> dict[str, Any]:
    return {"name": list(dependency.tasks), "iteration": str(dependency.iteration)}


VOLCANO = Format("volcano", "batch.volcano.sh/v1alpha1", "Job", _read, _write)
