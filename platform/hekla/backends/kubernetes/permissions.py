"""The permissions that Hekla needs in a cluster. Files in `deploy/kubernetes` grant them.

`rights.yaml`: always. In addition `rights-tenants.yaml` if each tenant has its own namespace, `rights-priorities.yaml`
if pods have priority classes, `rights-devices.yaml` if jobs claim devices, `rights-storage.yaml` if volumes count for
scheduling, `rights-ports.yaml` if ports of jobs are exposed, and `rights-volcano.yaml` if Volcano schedules.
`rights-terminals.yaml` is never required: without it, only terminals are refused.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from hekla.backends.kubernetes.config import KubernetesConfig
from hekla.backends.kubernetes.resource_paths import ATTACHED, CLAIMS, INGRESSES, POLICIES, api_group

if TYPE_CHECKING:
    from kubernetes.client import V1ResourceRule

_RBAC, _METRICS = "rbac.authorization.k8s.io", "metrics.k8s.io"


@dataclass(frozen=True, slots=True)
class ClusterPermission:
    """One verb on one resource. `everywhere`: in the whole cluster; otherwise in `namespace`, or if empty, in ours.

    `group`: the API group. `name`: only for the object with this name.
    """

    verb: str
    resource: str
    everywhere: bool = False
    namespace: str = ""
    group: str = ""
    name: str = ""

    def is_granted(self, rules: "Iterable[V1ResourceRule]") -> bool:
        """Whether one of these rules of a namespace grants it. Rules of a namespace grant nothing `everywhere`."""
        return not self.everywhere and any(self._is_granted_by(rule) for rule in rules)

    def _is_granted_by(self, rule: "V1ResourceRule") -> bool:
        part = self.resource.partition("/")[2]
        resources = {"*", self.resource, *([f"*/{part}"] if part else [])}
        return (
            not rule.resource_names
            and not {self.group, "*"}.isdisjoint(rule.api_groups or ())
            and not resources.isdisjoint(rule.resources or ())
            and not {self.verb, "*"}.isdisjoint(rule.verbs)
        )

    def __str__(self) -> str:
        resource = f"{self.resource}.{self.group}" if self.group == _METRICS else self.resource  # nodes are two kinds
        return " ".join(filter(None, (self.verb, resource, "*" if self.everywhere else self.namespace)))


HYPERNODES = ClusterPermission("list", "hypernodes", everywhere=True, group="topology.volcano.sh")
"""Needed only where the server knows such objects."""
NUMA_TOPOLOGIES = tuple(
    ClusterPermission(verb, "numatopologies", everywhere=True, group="nodeinfo.volcano.sh")
    for verb in ("list", "watch")
)
"""Needed only where the server knows such objects."""
RUNTIME_CLASSES = tuple(
    ClusterPermission(verb, "runtimeclasses", everywhere=True, group="node.k8s.io") for verb in ("list", "watch")
)
NODE_METRICS = ClusterPermission("list", "nodes", everywhere=True, group=_METRICS)
"""Needed only where the server serves this API, and no Prometheus is configured."""
_ON_PODS = ("create", "get", "list", "watch", "patch", "delete", "deletecollection")
REQUIRED = (
    ClusterPermission("list", "nodes", everywhere=True),
    ClusterPermission("list", "pods", everywhere=True),
    HYPERNODES,
    *NUMA_TOPOLOGIES,
    NODE_METRICS,
    *RUNTIME_CLASSES,
    *(ClusterPermission(verb, "pods") for verb in _ON_PODS),
    ClusterPermission("create", "pods/binding"),
    ClusterPermission("create", "pods/eviction"),
    *(ClusterPermission(verb, "poddisruptionbudgets", group="policy") for verb in ("list", "watch")),
    ClusterPermission("get", "pods/log"),
    *(
        ClusterPermission(verb, kind, group=api_group(kind))
        for kind in ATTACHED
        for verb in ("create", "list", "delete")
    ),
    ClusterPermission("get", CLAIMS),
    *(ClusterPermission(verb, POLICIES, group=api_group(POLICIES)) for verb in ("get", "patch")),
)
_QUEUES_OF_VOLCANO = tuple(
    ClusterPermission(verb, "queues", everywhere=True, group="scheduling.volcano.sh")
    for verb in ("create", "get", "patch")
)
_JOBS_OF_VOLCANO = (
    *(ClusterPermission(verb, "jobs", group="batch.volcano.sh") for verb in ("create", "list", "patch", "delete")),
    ClusterPermission("create", "commands", group="bus.volcano.sh"),
    ClusterPermission("list", "podgroups", group="scheduling.volcano.sh"),
    ClusterPermission("list", "events"),
)
REQUIRED_WITH_VOLCANO = (*REQUIRED, *_QUEUES_OF_VOLCANO, *_JOBS_OF_VOLCANO)
_ON_EXTERNAL_PODS = (
    ("list", "pods"),
    ("watch", "pods"),
    ("create", "pods/binding"),
    ("create", "pods/eviction"),
    ("patch", "pods/status"),
)
_ON_BUDGETS = (("list", "poddisruptionbudgets"), ("watch", "poddisruptionbudgets"))
_VOLCANO = "scheduling.volcano.sh"
_ON_GROUPS = (("list", "podgroups"), ("patch", "podgroups"))
REQUIRED_FOR_QUEUES = (
    *(
        ClusterPermission(verb, "queues", everywhere=True, group=_VOLCANO)
        for verb in ("create", "list", "patch", "delete")
    ),
    ClusterPermission("patch", "queues/status", everywhere=True, group=_VOLCANO),
)
"""To display our queues in the cluster, as `deploy/kubernetes/rights-adopted-queues.yaml` grants it."""

FOR_GROUP_PRIORITIES = tuple(
    ClusterPermission(verb, "priorityclasses", everywhere=True, group="scheduling.k8s.io") for verb in ("list", "watch")
)
"""To know the priorities of PodGroups, as `deploy/kubernetes/rights-adopted.yaml` grants it."""
_FOR_PRIORITIES = tuple(
    ClusterPermission(verb, "priorityclasses", everywhere=True, group="scheduling.k8s.io") for verb in ("create", "get")
)

_FOR_PORTS = (ClusterPermission("create", INGRESSES, group=api_group(INGRESSES)),)


_DEVICES = "resource.k8s.io"
DEVICES = (
    *(
        ClusterPermission(verb, resource, everywhere=True, group=_DEVICES)
        for resource in ("resourceslices", "deviceclasses", "resourceclaims", "resourceclaimtemplates")
        for verb in ("list", "watch")
    ),
    ClusterPermission("patch", "resourceclaims/binding", everywhere=True, group=_DEVICES),
)
"""Needed only where the server knows such objects."""
_FOR_CLAIMS = tuple(
    ClusterPermission("patch", resource, group=_DEVICES) for resource in ("resourceclaims", "resourceclaims/status")
)

_STORAGE = "storage.k8s.io"
_FOR_STORAGE = (
    *(
        ClusterPermission(verb, resource, everywhere=True, group=group)
        for resource, group in (
            (CLAIMS, ""),
            ("persistentvolumes", ""),
            ("storageclasses", _STORAGE),
            ("csinodes", _STORAGE),
            ("volumeattachments", _STORAGE),
            ("csidrivers", _STORAGE),
            ("csistoragecapacities", _STORAGE),
        )
        for verb in ("list", "watch")
    ),
    ClusterPermission("patch", "persistentvolumes", everywhere=True),
)
_FOR_VOLUME_CLAIMS = (ClusterPermission("patch", CLAIMS),)


def permissions_for_external_pods(
    namespace: str, *, has_groups: bool, claims_devices: bool = False, binds_volumes: bool = False
) -> list[ClusterPermission]:
    """To place external pods in this namespace, as `deploy/kubernetes/rights-adopted.yaml` grants it.

    `has_groups`: the cluster has Volcano's PodGroups. `claims_devices`, `binds_volumes`: the configuration of the
    cluster allows it.
    """
    found = [ClusterPermission(verb, resource, namespace=namespace) for verb, resource in _ON_EXTERNAL_PODS]
    found += [ClusterPermission(verb, one, namespace=namespace, group="policy") for verb, one in _ON_BUDGETS]
    if claims_devices:
        found += [replace(one, namespace=namespace) for one in _FOR_CLAIMS]
    if binds_volumes:
        found += [replace(one, namespace=namespace) for one in _FOR_VOLUME_CLAIMS]
    if has_groups:
        found += [
            ClusterPermission(verb, resource, namespace=namespace, group=_VOLCANO) for verb, resource in _ON_GROUPS
        ]
    return found


def required_permissions(config: KubernetesConfig) -> tuple[ClusterPermission, ...]:
    """All permissions for a cluster with this configuration, except those that Hekla grants to itself."""
    if config.scheduler == "volcano":
        return REQUIRED_WITH_VOLCANO
    more = () if config.namespaces == "shared" else _for_tenants(config.tenant_role)
    priorities = _FOR_PRIORITIES if config.priority_classes else ()
    devices = (*DEVICES, *(_FOR_CLAIMS if config.namespaces == "shared" else ())) if config.devices else ()
    storage = (*_FOR_STORAGE, *(_FOR_VOLUME_CLAIMS if config.namespaces == "shared" else ())) if config.storage else ()
    return (*REQUIRED, *more, *priorities, *devices, *storage, *(_FOR_PORTS if config.ingress else ()))


def _for_tenants(role: str) -> Iterator[ClusterPermission]:
    yield ClusterPermission("watch", "pods", everywhere=True)
    for verb in ("list", "watch"):
        yield ClusterPermission(verb, "poddisruptionbudgets", everywhere=True, group="policy")
    for verb in ("create", "get", "list"):
        yield ClusterPermission(verb, "namespaces", everywhere=True)
    yield ClusterPermission("create", "rolebindings", everywhere=True, group=_RBAC)
    yield ClusterPermission("bind", "clusterroles", everywhere=True, group=_RBAC, name=role)
