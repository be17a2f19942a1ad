"""What Hekla must be allowed in a cluster, as `deploy/kubernetes/rights.yaml` gives it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from hekla.backends.kubernetes import kinds


@dataclass(frozen=True, slots=True)
class Right:
    """To do this with those. `everywhere`: in the whole cluster, else in `namespace`, or ours. `group`: of the API."""

    verb: str
    resource: str
    everywhere: bool = False
    namespace: str = ""
    group: str = ""

    def is_in(self, rules: Iterable[Mapping[str, Any]]) -> bool:
        """Whether one of these rules of a namespace gives it. What is needed everywhere they cannot give."""
        return not self.everywhere and any(self._is_given_by(rule) for rule in rules)

    def _is_given_by(self, rule: Mapping[str, Any]) -> bool:
        part = self.resource.partition("/")[2]
        kinds = {"*", self.resource, *([f"*/{part}"] if part else [])}
        return (
            not rule.get("resourceNames")
            and not {self.group, "*"}.isdisjoint(rule.get("apiGroups") or ())
            and not kinds.isdisjoint(rule.get("resources") or ())
            and not {self.verb, "*"}.isdisjoint(rule.get("verbs") or ())
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
    Right("get", "pods/log"),
    *(Right(verb, way) for way in ("pods/exec", "pods/portforward") for verb in ("create", "get")),
    *(Right(verb, kind, group=kinds.group(kind)) for kind in kinds.ATTACHED for verb in ("create", "list", "delete")),
)
_OF_OTHERS = (
    ("list", "pods"),
    ("watch", "pods"),
    ("create", "pods/binding"),
    ("create", "pods/eviction"),
    ("patch", "pods/status"),
)
_OF_GROUPS = (("list", "podgroups"), ("patch", "podgroups"))


def needed_for_others(namespace: str, *, has_groups: bool) -> list[Right]:
    """What placing others' pods there takes, as `deploy/kubernetes/rights-adopted.yaml` gives it.

    `has_groups`: the cluster knows Volcano's PodGroups.
    """
    found = [Right(verb, resource, namespace=namespace) for verb, resource in _OF_OTHERS]
    if has_groups:
        group = "scheduling.volcano.sh"
        found += [Right(verb, resource, namespace=namespace, group=group) for verb, resource in _OF_GROUPS]
    return found
