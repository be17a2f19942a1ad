"""What Hekla must be allowed in a cluster, as `deploy/kubernetes/rights.yaml` gives it; and what it must be allowed
beside that where each tenant has a namespace of its own, as `rights-tenants.yaml` there gives it, where pods have
priority classes, as `rights-priorities.yaml` does, where ports of jobs are reached from outside, as `rights-ports.yaml`
does, or where Volcano schedules, as `rights-volcano.yaml` does.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hekla.backends.kubernetes import kinds
from hekla.backends.kubernetes.config import KubernetesConfig

if TYPE_CHECKING:
    from kubernetes.client import V1ResourceRule

_RBAC = "rbac.authorization.k8s.io"


@dataclass(frozen=True, slots=True)
class Right:
    """To do this with those. `everywhere`: in the whole cluster, else in `namespace`, or ours. `group`: of the API.

    `name`: only with that one.
    """

    verb: str
    resource: str
    everywhere: bool = False
    namespace: str = ""
    group: str = ""
    name: str = ""

    def is_in(self, rules: "Iterable[V1ResourceRule]") -> bool:
        """Whether one of these rules of a namespace gives it. What is needed everywhere they cannot give."""
        return not self.everywhere and any(self._is_given_by(rule) for rule in rules)

    def _is_given_by(self, rule: "V1ResourceRule") -> bool:
        part = self.resource.partition("/")[2]
        kinds = {"*", self.resource, *([f"*/{part}"] if part else [])}
        return (
            not rule.resource_names
            and not {self.group, "*"}.isdisjoint(rule.api_groups or ())
            and not kinds.isdisjoint(rule.resources or ())
            and not {self.verb, "*"}.isdisjoint(rule.verbs)
        )

    def __str__(self) -> str:
        return " ".join(filter(None, (self.verb, self.resource, "*" if self.everywhere else self.namespace)))


_OF_PODS = ("create", "get", "list", "watch", "patch", "delete", "deletecollection")
NEEDED = (
    Right("list", "nodes", everywhere=True),
    Right("list", "pods", everywhere=True),
    *(Right(verb, "pods") for verb in _OF_PODS),
    Right("create", "pods/binding"),
    Right("create", "pods/eviction"),
    Right("list", "poddisruptionbudgets", group="policy"),
    Right("get", "pods/log"),
    *(Right(verb, way) for way in ("pods/exec", "pods/portforward") for verb in ("create", "get")),
    *(Right(verb, kind, group=kinds.group(kind)) for kind in kinds.ATTACHED for verb in ("create", "list", "delete")),
    Right("get", kinds.CLAIMS),
    *(Right(verb, kinds.POLICIES, group=kinds.group(kinds.POLICIES)) for verb in ("get", "patch")),
)
_QUEUES_OF_VOLCANO = tuple(
    Right(verb, "queues", everywhere=True, group="scheduling.volcano.sh") for verb in ("create", "get", "patch")
)
_JOBS_OF_VOLCANO = (
    *(Right(verb, "jobs", group="batch.volcano.sh") for verb in ("create", "list", "patch", "delete")),
    Right("create", "commands", group="bus.volcano.sh"),
    Right("list", "podgroups", group="scheduling.volcano.sh"),
    Right("list", "events"),
)
NEEDED_WITH_VOLCANO = (*NEEDED, *_QUEUES_OF_VOLCANO, *_JOBS_OF_VOLCANO)
_OF_OTHERS = (
    ("list", "pods"),
    ("watch", "pods"),
    ("create", "pods/binding"),
    ("create", "pods/eviction"),
    ("patch", "pods/status"),
)
_VOLCANO = "scheduling.volcano.sh"
_OF_GROUPS = (("list", "podgroups"), ("patch", "podgroups"))
NEEDED_FOR_QUEUES = (
    *(Right(verb, "queues", everywhere=True, group=_VOLCANO) for verb in ("create", "list", "patch", "delete")),
    Right("patch", "queues/status", everywhere=True, group=_VOLCANO),
)
"""What showing our queues to others takes, as `deploy/kubernetes/rights-adopted-queues.yaml` gives it."""

_FOR_PRIORITIES = tuple(
    Right(verb, "priorityclasses", everywhere=True, group="scheduling.k8s.io") for verb in ("create", "get")
)

_FOR_PORTS = (Right("create", kinds.INGRESSES, group=kinds.group(kinds.INGRESSES)),)


def needed_for_others(namespace: str, *, has_groups: bool) -> list[Right]:
    """What placing others' pods there takes, as `deploy/kubernetes/rights-adopted.yaml` gives it.

    `has_groups`: the cluster knows Volcano's PodGroups.
    """
    found = [Right(verb, resource, namespace=namespace) for verb, resource in _OF_OTHERS]
    if has_groups:
        found += [Right(verb, resource, namespace=namespace, group=_VOLCANO) for verb, resource in _OF_GROUPS]
    return found


def needed(config: KubernetesConfig) -> tuple[Right, ...]:
    """All that a cluster with this configuration takes, where we ourselves do not give it to us."""
    if config.scheduler == "volcano":
        return NEEDED_WITH_VOLCANO
    more = () if config.namespaces == "shared" else _for_tenants(config.tenant_role)
    priorities = _FOR_PRIORITIES if config.priority_classes else ()
    return (*NEEDED, *more, *priorities, *(_FOR_PORTS if config.ingress else ()))


def _for_tenants(role: str) -> Iterator[Right]:
    yield Right("watch", "pods", everywhere=True)
    for verb in ("create", "get", "list"):
        yield Right(verb, "namespaces", everywhere=True)
    yield Right("create", "rolebindings", everywhere=True, group=_RBAC)
    yield Right("bind", "clusterroles", everywhere=True, group=_RBAC, name=role)
