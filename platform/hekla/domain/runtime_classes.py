"""Runtime classes of Kubernetes: what each adds to the pods that name it.

The API server writes it into a pod when the pod is created, so the scheduler must know it before.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hekla.domain.resources import Resources


@dataclass(frozen=True, slots=True)
class RuntimeClassFacts:
    """A runtime class. `overhead`: what a pod needs beside its containers, for example for a virtual machine.

    `node_selector`, `tolerations`: added to those of the pod, as in a Kubernetes pod.
    """

    overhead: Resources = field(default_factory=Resources)
    node_selector: Mapping[str, str] = field(default_factory=dict)
    tolerations: Sequence[Mapping[str, Any]] = ()

    @classmethod
    def read(cls, body: Mapping[str, Any]) -> "RuntimeClassFacts":
        """From a RuntimeClass object. Raises ValueError for amounts that are none."""
        scheduling = body.get("scheduling") or {}
        return cls(
            Resources.parse((body.get("overhead") or {}).get("podFixed") or {}),
            scheduling.get("nodeSelector") or {},
            tuple(scheduling.get("tolerations") or ()),
        )


NO_RUNTIME_CLASS = RuntimeClassFacts()
