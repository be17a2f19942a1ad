"""What Hekla must be allowed in a cluster, as `deploy/kubernetes/rights.yaml` gives it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from hekla.backends.kubernetes import kinds


@dataclass(frozen=True, slots=True)
class Right:
    """To do this with those. `everywhere`: in the whole cluster, else in our namespace. `group`: of the API."""

    verb: str
    resource: str
    everywhere: bool = False
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
        return f"{self.verb} {self.resource}{' *' if self.everywhere else ''}"


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
