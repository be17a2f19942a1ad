"""Builders of small cluster states for the engine's tests."""

from hekla.domain.phases import GangPhase
from hekla.domain.resources import Resources
from hekla.engine import cycle
from hekla.engine.decisions import Decisions
from hekla.engine.model import ClusterState, NodeSpec, PodGroupSpec, PodSpec, PodStatus, QueueSpec
from hekla.engine.policy import DEFAULT_POLICY_TEXT, SchedulerPolicy, parse

POLICY = parse(DEFAULT_POLICY_TEXT)


def node(name: str, cpu: str = "4", memory: str = "16Gi", **more: object) -> NodeSpec:
    return NodeSpec(name, Resources.parse({"cpu": cpu, "memory": memory, "pods": "110"}), **more)


def job(name: str, pods: int = 1, cpu: str = "1", minimum: int | None = None, **more: object) -> PodGroupSpec:
    """A gang of equal pods, admitted by default. `task`: further fields of its pods."""
    task = more.pop("task", {})
    least = pods if minimum is None else minimum
    request = Resources.parse({"cpu": cpu}) if cpu else Resources()
    tasks = tuple(PodSpec(f"{name}/{i}", f"{name}-w-{i}", "w", **{"request": request} | task) for i in range(pods))
    return PodGroupSpec(
        uid=name,
        name=name,
        min_available=least,
        min_task_member={"w": least},
        min_resources=request * least,
        pods=tasks,
        **{"queue": "q", "phase": GangPhase.INQUEUE} | more,
    )


def running(name: str, pods: int, on: str, **more: object) -> PodGroupSpec:
    return job(name, pods, phase=GangPhase.RUNNING, task={"status": PodStatus.RUNNING, "node": on}, **more)


def state(nodes: list[NodeSpec], jobs: list[PodGroupSpec], queues: list[QueueSpec] | None = None) -> ClusterState:
    return ClusterState(tuple(nodes), tuple(queues or [QueueSpec("q")]), tuple(jobs))


def decide(
    nodes: list[NodeSpec],
    jobs: list[PodGroupSpec],
    queues: list[QueueSpec] | None = None,
    policy: SchedulerPolicy = POLICY,
) -> Decisions:
    return cycle(state(nodes, jobs, queues), policy, 0.0)


def bound(decisions: Decisions) -> dict[str, int]:
    """The number of bound pods of each job."""
    counts: dict[str, int] = {}
    for bind in decisions.binds:
        counts[bind.job] = counts.get(bind.job, 0) + 1
    return counts
