"""From what the controller orders to objects of Kubernetes."""

import base64
import math
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath

from hekla.backends.base import PodKey, PodOrder, StartRefused
from hekla.backends.kubernetes import folders, kinds, names, volumes, walls
from hekla.backends.kubernetes.api import Json
from hekla.backends.kubernetes.config import KubernetesConfig
from hekla.backends.kubernetes.places import Places
from hekla.backends.kubernetes.reading import Seen
from hekla.domain.volumes import WORKING_DIR

_FILES, _SECRETS = "files", "secrets"
MAX_FILES_BYTES = 900_000
"""What fits into one object of the API server's store, with room for its frame."""


class Manifests:
    """The objects of one cluster."""

    def __init__(self, cluster: str, config: KubernetesConfig) -> None:
        self._cluster, self._config, self._places = cluster, config, Places(config)

    def pod(self, order: PodOrder, *, priority_class: str = "") -> Json:
        """The pod, not bound to a node yet. Raises StartRefused where Kubernetes cannot run such a one."""
        _check(order)
        for claim in () if self._is_apart(order.key) else volumes.named(order):
            volumes.check_claim(claim, self._config)
        amounts = {name: text for name, text in order.resources.quantities().items() if name != "pods"}
        container = {
            "name": names.MAIN,
            "image": order.image or self._config.image,
            "command": [literally(word) for word in order.command],
            "env": [{"name": name, "value": literally(value)} for name, value in order.env.items()],
            "workingDir": str(WORKING_DIR / order.working_dir),
            "resources": self._resources(order.key, amounts),
            "terminationMessagePolicy": "FallbackToLogsOnError",
            "volumeMounts": [{"name": "work", "mountPath": str(WORKING_DIR)}, *_mounts(order)],
        }
        spec = {
            "containers": [container],
            "volumes": [{"name": "work", "emptyDir": {}}, *_volumes(order)],
            "terminationGracePeriodSeconds": math.ceil(order.grace_seconds),
            **self._network(order),
            **({"priorityClassName": priority_class} if priority_class else {}),
        }
        pod = self._pod(order.key, spec, {names.ADDRESS: order.address})
        pod["metadata"]["labels"] |= {names.CLOSED: "true"} if order.is_closed else {}
        return pod

    def tombstone(self, key: PodKey, reason: str) -> Json:
        """In place of a pod that is never to run: it is never bound, and takes nothing of any quota but its number."""
        resources = {"requests": walls.NOTHING, "limits": walls.NOTHING}
        container = {"name": names.MAIN, "image": self._config.image, "resources": resources}
        return self._pod(key, {"containers": [container]}, {names.STOPPED: reason})

    def _pod(self, key: PodKey, spec: Json, annotations: Mapping[str, str]) -> Json:
        common: Json = {
            "schedulerName": names.SCHEDULER,
            "restartPolicy": "Never",
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
        }
        if self._is_apart(key):
            common["serviceAccountName"] = walls.ACCOUNT
        meta = {"name": key.name, "labels": names.labels(self._cluster, key), "annotations": dict(annotations)}
        return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": {**common, **spec}}

    def _resources(self, key: PodKey, amounts: Mapping[str, str]) -> Json:
        """Where there may be a quota, a pod says of all that it counts how much it asks for."""
        asked = {**walls.NOTHING, **amounts} if self._is_apart(key) else amounts
        return {"requests": asked, "limits": amounts}

    def _is_apart(self, key: PodKey) -> bool:
        """Whether it is in its tenant's own namespace."""
        return self._places.is_apart and bool(key.tenant)

    def _network(self, order: PodOrder) -> Json:
        """The pod's own name within the service of its job, where the others find it by its first part, too."""
        service = names.service_of(order.key.job)
        search = f"{service}.{self._places.namespace_of(order.key.tenant)}.svc.cluster.local"
        return {"hostname": names.host_of(order.address), "subdomain": service, "dnsConfig": {"searches": [search]}}

    def of_job(self, order: PodOrder) -> Iterator[tuple[str, Json]]:
        """What the pod's job has once for all of its pods, by kind. Who is to be kept out is so before pods begin."""
        if order.is_closed:
            yield kinds.POLICIES, self.policy(order.key.job)
        if order.has_peers:
            yield kinds.SERVICES, self.service(order.key.job)
        for claim in volumes.claims(self._cluster, order):
            yield kinds.CLAIMS, claim

    def service(self, job: str) -> Json:
        """What gives the pods of a job their names, also before they are ready: they may wait for each other."""
        labels = names.job_labels(self._cluster, job)
        spec = {"clusterIP": "None", "publishNotReadyAddresses": True, "selector": labels}
        return {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": names.service_of(job), "labels": labels},
            "spec": spec,
        }

    def policy(self, job: str) -> Json:
        """What lets nobody reach the pods of a job but one another, on networks that heed it."""
        labels = names.job_labels(self._cluster, job)
        ours = {"matchLabels": labels}
        return {
            "apiVersion": "networking.k8s.io/v1",
            "kind": "NetworkPolicy",
            "metadata": {"name": names.service_of(job), "labels": labels},
            "spec": {"podSelector": ours, "policyTypes": ["Ingress"], "ingress": [{"from": [{"podSelector": ours}]}]},
        }

    def files(self, order: PodOrder, uid: str) -> list[tuple[str, Json]]:
        """What the pod finds in its working folder, by kind; it goes with the pod that has this uid."""
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

    def binding(self, pod: Seen, node: str) -> Json:
        """This pod belongs on that node: no other of its name, and only as it was seen, not asked to end since."""
        return {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": pod.name, "uid": pod.uid, "resourceVersion": str(pod.version)},
            "target": {"apiVersion": "v1", "kind": "Node", "name": node},
        }


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
    folders.check(order)
    volumes.check(order)


def _volumes(order: PodOrder) -> list[Json]:
    made: list[Json] = []
    if order.files:
        made.append({"name": _FILES, "configMap": {"name": order.key.name}})
    if order.secrets:
        made.append({"name": _SECRETS, "secret": {"secretName": order.key.name, "defaultMode": folders.FOR_ALL}})
    return made + folders.volumes(order) + volumes.volumes(order)


def _mounts(order: PodOrder) -> list[Json]:
    return [
        {"name": volume, "mountPath": str(WORKING_DIR / name), "subPath": folders.entry(name)}
        for volume, content in ((_FILES, order.files), (_SECRETS, order.secrets))
        for name in content
    ] + [*folders.mounts(order), *volumes.mounts(order)]


def _encoded(content: Mapping[str, str]) -> dict[str, str]:
    return {folders.entry(name): base64.b64encode(text.encode()).decode() for name, text in content.items()}


def literally(text: str) -> str:
    """Kubernetes reads `$(NAME)` and `$$` in commands and environments; what was ordered is to arrive as it is."""
    return text.replace("$", "$$")
