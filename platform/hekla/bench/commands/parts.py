"""Uniform nodes and gangs, the parts of the measured cluster states."""

from typing import Any

from hekla.domain.phases import GangPhase
from hekla.domain.resources import Resources
from hekla.engine.model import ClusterState, NodeSpec, PodGroupSpec, PodSpec, PodStatus, QueueSpec

CORES, GIB, PODS = 32, 128, 110
"""Capacity of a node."""
DEFAULT_QUEUE = "default"
_ROOM = Resources.parse({"cpu": CORES, "memory": f"{GIB}Gi", "pods": PODS})


def machines(count: int, **more: Any) -> tuple[NodeSpec, ...]:  # noqa: ANN401
    """Uniform nodes, with numbered names."""
    return tuple(NodeSpec(f"node-{at:06}", _ROOM, **more) for at in range(count))


def asking(cpu: float = 1, gib: float = 2) -> Resources:
    """A request of this many cores and GiB."""
    return Resources.parse({"cpu": f"{cpu * 1000:.0f}m", "memory": f"{gib * 1024:.0f}Mi"})


def gang(name: str, pods: int, request: Resources, *, least: int | None = None, **more: Any) -> PodGroupSpec:  # noqa: ANN401
    """An admitted gang of uniform pods. `least`: its minimum, by default all pods. `task`: extra fields of each pod."""
    task, least = more.pop("task", {}), pods if least is None else least
    return PodGroupSpec(
        uid=name,
        name=name,
        min_available=least,
        min_task_member={"worker": least},
        min_resources=request * least,
        pods=tuple(PodSpec(f"{name}/{at}", f"{name}-worker-{at}", "worker", request, **task) for at in range(pods)),
        **{"queue": DEFAULT_QUEUE, "phase": GangPhase.INQUEUE} | more,
    )


def running(name: str, pods: int, request: Resources, on: str, **more: Any) -> PodGroupSpec:  # noqa: ANN401
    """A job of uniform pods that run on the node `on`."""
    task = {"status": PodStatus.RUNNING, "node": on}
    return gang(name, pods, request, phase=GangPhase.RUNNING, task=task, **more)


def cluster(nodes: tuple[NodeSpec, ...], jobs: list[PodGroupSpec], *queues: QueueSpec) -> ClusterState:
    """A cluster state, by default with one queue."""
    return ClusterState(nodes, queues or (QueueSpec(DEFAULT_QUEUE),), tuple(jobs))
