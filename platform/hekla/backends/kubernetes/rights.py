"""What Hekla must be allowed in a cluster, as `deploy/kubernetes/rights.yaml` gives it."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Right:
    """To do this with those. `everywhere`: in the whole cluster, else in our namespace."""

    verb: str
    resource: str
    everywhere: bool = False

    def __str__(self) -> str:
        return f"{self.verb} {self.resource}{' *' if self.everywhere else ''}"


_OF_PODS = ("create", "get", "list", "watch", "patch", "delete", "deletecollection")
NEEDED = (
    Right("list", "nodes", everywhere=True),
    Right("list", "pods", everywhere=True),
    *(Right(verb, "pods") for verb in _OF_PODS),
    Right("create", "pods/binding"),
    Right("get", "pods/log"),
    *(Right(verb, kind) for kind in ("services", "configmaps", "secrets") for verb in ("create", "list", "delete")),
)
