"""Convert pod orders to Kubernetes objects."""

import base64
import math
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath

from hekla.backends.base import PodKey, PodOrder, StartRefused
from hekla.backends.kubernetes import (
    names,
    placement,
    pod_security,
    projected_files,
    runtime_settings,
    tenant_manifests,
    volumes,
)
from hekla.backends.kubernetes.api import Json
from hekla.backends.kubernetes.bindings import binding
from hekla.backends.kubernetes.config import KubernetesConfig
from hekla.backends.kubernetes.layout import NamespaceLayout
from hekla.backends.kubernetes.pod_state import PodState
from hekla.backends.kubernetes.resource_paths import CLAIMS, POLICIES, SERVICES
from hekla.domain.volumes import WORKING_DIR

_FILES, _SECRETS = "files", "secrets"
_GROUP_OF_WORK = {"fsGroup": 1000, "fsGroupChangePolicy": "OnRootMismatch"}
"""Each user in the pod may write to its claimed working folder."""
MAX_FILES_BYTES = 900_000
"""The size that fits into one object of the API server's store, with room for the rest of the object."""


class Manifests:
    """Manifests for one cluster."""

    def __init__(self, cluster: str, config: KubernetesConfig) -> None:
        self._cluster, self._config, self._layout = cluster, config, NamespaceLayout(config)

    def pod(self, order: PodOrder, *, priority_class: str = "") -> Json:
        """The pod, not bound to a node yet. Raises StartRefused if Kubernetes cannot run it."""
        _check(order)
        is_own = self._has_own_namespace(order.key)
        for claim in () if is_own else volumes.existing_claims(order):
            volumes.check_claim(claim, self._config)
        runtime_settings.check(order.settings, self._config, in_own_namespace=is_own)
        amounts = {name: text for name, text in order.resources.quantities().items() if name != "pods"}
        container = {
            "name": names.MAIN,
            "image": order.image or self._config.image,
            **_command(order),
            "env": [{"name": name, "value": escape(value)} for name, value in order.env.items()],
            "resources": {**self._resources(order.key, amounts), **order.settings.resource_fields()},
            "terminationMessagePolicy": "FallbackToLogsOnError",
            "volumeMounts": [{"name": "work", "mountPath": str(WORKING_DIR)}, *_mounts(order)],
            **order.settings.container_fields(),
        }
        spec = {
            "containers": [container],
            "volumes": [{"name": "work", **volumes.work_volume(order)}, *_volumes(order)],
            "terminationGracePeriodSeconds": math.ceil(order.grace_seconds),
            **(order.placement if is_own else placement.in_shared_namespace(order.placement)),
            **self._network(order),
            **order.settings.pod_fields(),
            **({"priorityClassName": priority_class} if priority_class else {}),
        }
        if order.freezes or order.frozen:  # the root of a new volume belongs to root, that of an emptyDir to all
            spec["securityContext"] = {**_GROUP_OF_WORK, **spec.get("securityContext", {})}
        freezes = {names.FREEZES: "true"} if order.freezes else {}
        pod = self._pod(order.key, spec, {names.ADDRESS: order.address, **freezes})
        closed = {names.CLOSED: "true"} if order.is_closed else {}
        pod["metadata"]["labels"] = {**(order.labels if is_own else {}), **pod["metadata"]["labels"], **closed}
        return pod

    def tombstone(self, key: PodKey, reason: str) -> Json:
        """A placeholder for a pod that must never run. It is never bound, and quotas count only its number."""
        resources = {"requests": tenant_manifests.NOTHING, "limits": tenant_manifests.NOTHING}
        container = {"name": names.MAIN, "image": self._config.image, "resources": resources}
        return self._pod(key, {"containers": [container]}, {names.STOPPED: reason})

    def _pod(self, key: PodKey, spec: Json, annotations: Mapping[str, str]) -> Json:
        common: Json = {
            "schedulerName": names.SCHEDULER,
            "restartPolicy": "Never",
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
        }
        if self._has_own_namespace(key):
            common["serviceAccountName"] = tenant_manifests.ACCOUNT
        meta = {"name": key.name, "labels": names.labels(self._cluster, key), "annotations": dict(annotations)}
        whole = {**common, **spec}
        pod_security.harden(whole, self._config)
        return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": whole}

    def _resources(self, key: PodKey, amounts: Mapping[str, str]) -> Json:
        """Requests and limits. If there may be a quota, the pod must request every resource that the quota counts."""
        requests = {**tenant_manifests.NOTHING, **amounts} if self._has_own_namespace(key) else amounts
        return {"requests": requests, "limits": amounts}

    def _has_own_namespace(self, key: PodKey) -> bool:
        """Whether the pod is in its tenant's own namespace."""
        return self._layout.per_tenant and bool(key.tenant)

    def _network(self, order: PodOrder) -> Json:
        """The pod's DNS name within the service of its job. Other pods can also use only the first part."""
        service = names.service_of(order.key.job)
        search = f"{service}.{self._layout.namespace_of(order.key.tenant)}.svc.cluster.local"
        return {"hostname": names.host_of(order.address), "subdomain": service, "dnsConfig": {"searches": [search]}}

    def shared(self, order: PodOrder) -> Iterator[tuple[str, Json]]:
        """The objects shared by all pods of the job, by kind. The network policy comes first, before any pod."""
        if order.is_closed or order.has_peers:
            yield POLICIES, self.policy(order)
        if order.has_peers:
            yield SERVICES, self.service(order.key.job)
        for claim in volumes.claims(self._cluster, order, self._config):
            yield CLAIMS, claim

    def service(self, job: str) -> Json:
        """The headless service that names the pods of a job, ready or not: they may wait for each other."""
        labels = names.job_labels(self._cluster, job)
        spec = {"clusterIP": "None", "publishNotReadyAddresses": True, "selector": labels}
        return {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": names.service_of(job), "labels": labels},
            "spec": spec,
        }

    def policy(self, order: PodOrder) -> Json:
        """The policy of the job, on networks that enforce policies: its pods may connect to each other."""
        labels = names.job_labels(self._cluster, order.key.job)
        return tenant_manifests.job_policy(names.service_of(order.key.job), labels, is_closed=order.is_closed)

    def files(self, order: PodOrder, uid: str) -> list[tuple[str, Json]]:
        """The files in the pod's working folder, by kind. They are deleted with the pod of this uid."""
        owner = {"apiVersion": "v1", "kind": "Pod", "name": order.key.name, "uid": uid}
        meta = {
            "name": order.key.name,
            "labels": names.labels(self._cluster, order.key),
            "ownerReferences": [owner],
        }
        made = [("configmaps", "ConfigMap", order.files), ("secrets", "Secret", order.secrets)]
        return [
            (place, {"apiVersion": "v1", "kind": kind, "metadata": meta, _DATA[kind]: _encoded(content)})
            for place, kind, content in made
            if content
        ]

    def binding(self, pod: PodState, order: PodOrder) -> Json:
        """The binding of the pod to its node; it fails if the pod has changed since it was read."""
        made = binding(pod.name, pod.uid, order.node, order.annotations)
        made["metadata"]["resourceVersion"] = str(pod.version)
        return made


_DATA = {"ConfigMap": "binaryData", "Secret": "data"}


def _check(order: PodOrder) -> None:
    if order.environment is not None and order.environment.requirements:
        raise StartRefused(
            f"The environment “{order.environment.name}” is made on machines of the kind local; name an image instead."
        )
    if sum(len(text.encode()) for text in (*order.files.values(), *order.secrets.values())) > MAX_FILES_BYTES:
        raise StartRefused(f"A pod on Kubernetes may bring {MAX_FILES_BYTES // 1000} kB of files.")
    for name in (*order.files, *order.secrets):
        path = PurePosixPath(name)
        if path.is_absolute() or ".." in path.parts or not path.parts:
            raise StartRefused(f"“{name[:80]}” is not a file below the working folder.")
    projected_files.check(order)
    volumes.check(order)


def _volumes(order: PodOrder) -> list[Json]:
    made: list[Json] = []
    if order.files:
        made.append({"name": _FILES, "configMap": {"name": order.key.name}})
    if order.secrets:
        made.append(
            {"name": _SECRETS, "secret": {"secretName": order.key.name, "defaultMode": projected_files.FOR_ALL}}
        )
    return made + projected_files.volumes(order) + volumes.volumes(order)


def _mounts(order: PodOrder) -> list[Json]:
    return [
        {"name": volume, "mountPath": str(WORKING_DIR / name), "subPath": projected_files.file_key(name)}
        for volume, content in ((_FILES, order.files), (_SECRETS, order.secrets))
        for name in content
    ] + [*projected_files.mounts(order), *volumes.mounts(order)]


def _encoded(content: Mapping[str, str]) -> dict[str, str]:
    return {projected_files.file_key(name): base64.b64encode(text.encode()).decode() for name, text in content.items()}


def _command(order: PodOrder) -> Json:
    """The command and its folder. The image's own command runs in the image's folder unless another is given."""
    if not order.command and not order.working_dir:
        return _words("args", order.args)
    folder = {"workingDir": str(WORKING_DIR / order.working_dir)}
    return _words("command", order.command) | _words("args", order.args) | folder


def _words(name: str, words: tuple[str, ...]) -> Json:
    return {name: [escape(word) for word in words]} if words else {}


def escape(text: str) -> str:
    """Escape `$`: Kubernetes expands `$(NAME)` and `$$` in commands and environments."""
    return text.replace("$", "$$")
