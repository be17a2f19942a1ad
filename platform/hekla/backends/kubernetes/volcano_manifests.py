"""Convert jobs and queues to Volcano's objects."""

from collections.abc import Iterator
from typing import Any

from hekla.backends.base import BackendError, StartRefused
from hekla.backends.delegated import DelegatedJobSize, QueueOrder
from hekla.backends.kubernetes import names, placement, pod_security, runtime_settings, tenant_manifests, volumes
from hekla.backends.kubernetes.api import Json
from hekla.backends.kubernetes.config import KubernetesConfig
from hekla.backends.kubernetes.manifests import escape
from hekla.backends.kubernetes.resource_paths import CLAIMS, POLICIES
from hekla.domain.formats import volumes as claims
from hekla.domain.formats import writing
from hekla.domain.formats.annotations import SUCCESS_POLICY
from hekla.domain.formats.volcano import VOLCANO
from hekla.domain.jobspec import JobSpec
from hekla.domain.policies import LifecycleAction, LifecycleEvent
from hekla.domain.task_spec import SuccessPolicy, TaskSpec

_PLUGINS = frozenset({"env", "svc", "ssh", "pytorch", "tensorflow", "mpi"})
"""Job plugins that Volcano and Hekla have, with the same names."""
_LONGEST_HOST_NAME = 63
_MOST_WEIGHT = 65535
_ENDED = {"terminationMessagePolicy": "FallbackToLogsOnError"}
_POD = {"automountServiceAccountToken": False, "enableServiceLinks": False}


class VolcanoManifests:
    """Manifests for one cluster."""

    def __init__(self, cluster: str, config: KubernetesConfig) -> None:
        self._cluster, self._config = cluster, config

    def job(self, uid: str, spec: JobSpec, tenant: str) -> tuple[Json, list[tuple[str, Json]]]:
        """The Job, and by kind its network policy and the objects that its pods mount.

        Sets the defaults of Volcano's webhooks too, because a cluster may not have these. Raises StartRefused if
        Volcano cannot run it.
        """
        _check(spec)
        self._check_configured(spec)
        named = spec.model_copy(update={"name": job_name(uid, spec.name)})
        _check_host_names(named)
        manifest: Json = {"apiVersion": VOLCANO.api_version, "kind": VOLCANO.kind, **VOLCANO.write(named)}
        labels = names.job_labels(self._cluster, uid)
        manifest["metadata"]["labels"] = labels
        of_pods = {**labels, names.TENANT: names.tenant(tenant)}  # by which network policies select them
        manifest["spec"].pop("ttlSecondsAfterFinished", None)  # Hekla deletes the job itself
        manifest["spec"]["minAvailable"] = spec.gang_minimum
        for task in manifest["spec"]["tasks"]:
            self._complete(task, of_pods)
            placement.restrict_to_tenant(task["template"]["spec"], tenant)
        policy = tenant_manifests.job_policy(names.service_of(uid), labels, is_closed=False)
        return manifest, [(POLICIES, policy), *_companions(named, labels)]

    def _complete(self, task: Json, labels: dict[str, str]) -> None:
        template = task["template"]
        meta = template.setdefault("metadata", {})
        own = placement.tenant_labels(meta.get("labels", {}))
        meta["labels"] = {**own, **labels, names.TASK: task["name"]}
        (container,) = template["spec"]["containers"]
        container |= {"name": names.MAIN, **_ENDED}
        container.setdefault("image", self._config.image)
        for field in ("command", "args"):
            if field in container:
                container[field] = [escape(word) for word in container[field]]
        for variable in container.get("env", ()):
            variable["value"] = escape(variable["value"])
        template["spec"] |= _POD
        pod_security.harden(template["spec"], self._config)
        if self._config.node_labels:
            template["spec"].setdefault("nodeSelector", {}).update(self._config.node_labels)

    def _check_configured(self, spec: JobSpec) -> None:
        for volume in spec.volumes:
            volumes.check_claim(volume.volume_claim_name, self._config)
        for task in spec.tasks:
            runtime_settings.check(task.runtime_settings, self._config)

    def resized(self, job: Json, size: DelegatedJobSize) -> Json:
        """The merge patch that resizes the job; it fails if the job has changed since it was read.

        Raises BackendError if others have changed its tasks.
        """
        if {task["name"] for task in job["spec"]["tasks"]} != size.tasks.keys():
            raise BackendError("The tasks of the job were changed in the cluster")
        tasks = [{**task, **_size_fields(task, *size.tasks[task["name"]])} for task in job["spec"]["tasks"]]
        meta = {name: job["metadata"][name] for name in ("uid", "resourceVersion")}
        return {"metadata": meta, "spec": {"minAvailable": size.least, "tasks": tasks}}

    def command(self, job: Json, action: LifecycleAction, api_version: str) -> Json:
        """The Command for an action. Its name contains job and action, so there is only one of each at a time."""
        meta = job["metadata"]
        target = {
            "apiVersion": job.get("apiVersion", VOLCANO.api_version),
            "kind": VOLCANO.kind,
            "name": meta["name"],
            "uid": meta["uid"],
            "controller": True,
            "blockOwnerDeletion": False,
        }
        name = f"{meta['name']}-{str(action).lower()}"
        return {
            "apiVersion": api_version,
            "kind": "Command",
            "metadata": {"name": name, "labels": meta["labels"], "ownerReferences": [target]},
            "action": str(action),
            "target": target,
        }


def queue_manifest(order: QueueOrder, cluster: str, api_version: str) -> Json:
    """The Queue. Unset fields are null, which removes them from an existing one."""
    spec: dict[str, Any] = {
        "weight": min(max(1, order.weight), _MOST_WEIGHT),
        "priority": order.priority,
        "reclaimable": order.reclaimable,
        "parent": order.parent or "root",
        "capability": dict(order.capability) or None,
        "guarantee": {"resource": dict(order.guarantee)} if order.guarantee else None,
        "deserved": dict(order.deserved) or None,
        "affinity": dict(order.affinity) or None,
    }
    meta: Json = {"name": order.name, "labels": {names.CLUSTER: cluster}}
    if order.annotations:
        meta["annotations"] = dict(order.annotations)
    return {"apiVersion": api_version, "kind": "Queue", "metadata": meta, "spec": spec}


def _size_fields(task: Json, replicas: int, least: int) -> Json:
    """The fields that state the size of a task. The minimum stays omitted if the default is equal."""
    is_stated = "minAvailable" in task or least != replicas
    return {"replicas": replicas, **({"minAvailable": least} if is_stated else {})}


def job_name(uid: str, name: str) -> str:
    """The job's name in the cluster: unique, because jobs may have equal names; short, to leave room for task names."""
    return f"{name[:20].rstrip('-')}-{uid[:8]}"


def _companions(spec: JobSpec, labels: dict[str, str]) -> Iterator[tuple[str, Json]]:
    """The ConfigMap with the job's files, and the claims created for it, by kind."""
    for manifest in writing.companions(spec):
        kind = CLAIMS if manifest["kind"] == claims.CLAIM else "configmaps"
        yield kind, manifest | {"metadata": {"name": manifest["metadata"]["name"], "labels": labels}}


def _check(spec: JobSpec) -> None:
    for task in spec.tasks:
        if task.environment:
            raise StartRefused(
                f"The environment “{task.environment}” is made on machines of the kind local; name an image instead."
            )
        if task.success_policy is not SuccessPolicy.ALL_REPLICAS and not _completes_job(task, spec):
            raise StartRefused(
                f"Volcano completes a task with all its replicas. The task {task.name} completes with its first one "
                f"({SUCCESS_POLICY}). On this cluster, that can only complete the job, without a delay."
            )
    if strange := sorted(set(spec.plugins) - _PLUGINS):
        raise StartRefused(f"Volcano has no job plugin “{strange[0]}” that does what ours does.")


def _completes_job(task: TaskSpec, spec: JobSpec) -> bool:
    """Whether the completion of the task has no other effect than to complete the job at once."""
    policies = (one for one in (*task.policies, *spec.policies) if one.matches(LifecycleEvent.TASK_COMPLETED, None))
    policy = next(policies, None)
    return policy is None or (policy.action is LifecycleAction.COMPLETE_JOB and not policy.timeout_seconds)


def _check_host_names(spec: JobSpec) -> None:
    longest = max(len(f"{spec.name}-{task.name}-{max(task.replicas - 1, 0)}") for task in spec.tasks)
    if longest > _LONGEST_HOST_NAME:
        raise StartRefused(
            f"With the name that the job has in the cluster ({spec.name}) its pods would have host names of {longest} "
            f"letters, and {_LONGEST_HOST_NAME} are possible. Shorten the names of its tasks."
        )
