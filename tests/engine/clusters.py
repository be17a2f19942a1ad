"""Random small clusters for property tests: idle or full, fair or not, with all kinds of constraints."""

from dataclasses import dataclass, replace

from hypothesis import strategies as st

from hekla.domain.phases import GangPhase
from hekla.domain.resources import Resources
from hekla.domain.taints import Taint
from hekla.engine.model import ClusterState, NodeSpec, PodGroupSpec, PodSpec, PodStatus, QueueSpec, Toleration

CORE, GIB = 1000.0, 2.0**30
TAINTS = (Taint("team", "a"), Taint("team", "b", "NoExecute"), Taint("soft", "", "PreferNoSchedule"))
TOLERATIONS = (
    Toleration("team", value="a"), Toleration("team", "Exists"), Toleration("team", value="b", effect="NoSchedule"),
)  # fmt: skip
STATUSES = (PodStatus.RUNNING,) * 4 + (PodStatus.BOUND, PodStatus.RELEASING)


@dataclass(frozen=True)
class Kind:
    """Parameters of the random clusters. `has_best_effort`: some tasks have no requests."""

    nodes: int = 5
    cores: int = 8
    pods: tuple[int, ...] = (2, 5, 110)
    has_barriers: bool = True
    least_jobs: int = 1
    is_full: bool = False
    has_best_effort: bool = False


ANY = Kind()
WITH_BEST_EFFORT = Kind(has_best_effort=True)
FULL = Kind(nodes=3, cores=4, pods=(6, 110), has_barriers=False, least_jobs=4, is_full=True)
"""The first half of the jobs runs wherever there is room; the others are pending."""


def amounts(cpu: float, memory: float, pods: float = 0) -> Resources:
    return Resources({"cpu": cpu * CORE, "memory": memory * GIB, "pods": pods})


@st.composite
def clusters(draw: st.DrawFn, kind: Kind = ANY) -> ClusterState:
    nodes, queues = draw(_nodes(kind)), draw(_queues())
    room = {node.name: dict(node.allocatable) for node in nodes}
    count = draw(st.integers(kind.least_jobs, 8))
    jobs = [draw(_jobs(kind, number, number < count / 2, queues, room)) for number in range(count)]
    return ClusterState(tuple(nodes), tuple(queues), tuple(jobs))


@st.composite
def _nodes(draw: st.DrawFn, kind: Kind) -> list[NodeSpec]:
    names = draw(st.permutations([f"n{at}" for at in range(draw(st.integers(1, kind.nodes)))]))
    taints = st.lists(st.sampled_from(TAINTS), max_size=int(kind.has_barriers))
    sizes = st.builds(amounts, st.integers(1, kind.cores), st.integers(4, 16), st.sampled_from(kind.pods))
    return [
        NodeSpec(
            name,
            draw(sizes),
            labels={"zone": draw(st.sampled_from("xy"))},
            taints=tuple(draw(taints)),
            unschedulable=kind.has_barriers and draw(st.integers(0, 9)) == 0,
        )
        for name in names
    ]


@st.composite
def _queues(draw: st.DrawFn) -> list[QueueSpec]:
    guarantee = st.none() | st.builds(amounts, st.integers(0, 2), st.integers(0, 2))
    capability = st.none() | st.builds(amounts, st.integers(2, 8), st.integers(2, 16))
    return [
        QueueSpec(
            f"q{at}",
            weight=draw(st.integers(1, 4)),
            capability=draw(capability),
            guarantee=draw(guarantee),
            reclaimable=draw(st.integers(0, 3)) > 0,
            priority=draw(st.sampled_from([0, 0, 0, 1])),
            is_open=draw(st.integers(0, 9)) > 0,
            created_at=float(draw(st.integers(0, 2))),
        )
        for at in range(draw(st.integers(1, 3)))
    ]


@st.composite
def _jobs(
    draw: st.DrawFn, kind: Kind, number: int, is_early: bool, queues: list[QueueSpec], room: dict[str, dict[str, float]]
) -> PodGroupSpec:
    name, priority = f"j{number}", draw(st.integers(0, 2))
    runs = is_early if kind.is_full else draw(st.booleans())
    grows = runs and kind.is_full
    roles = {role: draw(st.integers(2 if grows else 1, 4)) for role in draw(st.sampled_from(["w", "w", "pw"]))}
    tasks = [task for role, pods in roles.items() for task in draw(_tasks(kind, name, role, pods, priority))]
    if runs:
        tasks = [draw(_on_a_node(kind, task, room)) for task in tasks]
    minimums = {role: draw(st.integers(0, 1 if grows else pods)) for role, pods in roles.items()}
    least = max(draw(st.sampled_from([sum(minimums.values()), 1, 1 if grows else len(tasks)])), 1)
    has_started = any(task.node for task in tasks)
    return PodGroupSpec(
        uid=f"ns/{name}",
        name=name,
        namespace="ns",
        queue=draw(st.sampled_from(queues)).name,
        priority=priority,
        min_available=least,
        min_task_member=draw(st.sampled_from([minimums, {}])),
        min_resources=tasks[0].request * least if draw(st.booleans()) else None,
        phase=GangPhase.RUNNING if has_started else draw(st.sampled_from([GangPhase.PENDING, GangPhase.INQUEUE])),
        created_at=float(draw(st.integers(0, 2))),
        pods=tuple(tasks),
    )


@st.composite
def _tasks(draw: st.DrawFn, kind: Kind, job: str, role: str, pods: int, priority: int) -> list[PodSpec]:
    """Tasks that are equal except for their priority."""
    request = draw(st.builds(amounts, st.sampled_from([0.5, 1, 2, 3]), st.sampled_from([0.5, 1, 2, 4])))
    if kind.has_best_effort and draw(st.integers(0, 3)) == 0:
        request = Resources()
    more = {
        "preemptable": draw(st.integers(0, 4)) > 0,
        "never_preempts": draw(st.integers(0, 9)) == 0,
        "priority_class": draw(st.sampled_from(["", "", "", "system-node-critical"])),
        "node_selector": draw(st.sampled_from([{}, {}, {"zone": "x"}])),
        "tolerations": draw(st.sampled_from([(), *((one,) for one in TOLERATIONS)])),
    }
    names = [f"{job}-{role}-{at}" for at in range(pods)]
    return [
        PodSpec(name, name, role, request, priority=priority + draw(st.sampled_from([0, 0, 0, 1])), **more)
        for name in names
    ]


@st.composite
def _on_a_node(draw: st.DrawFn, kind: Kind, task: PodSpec, room: dict[str, dict[str, float]]) -> PodSpec:
    """The task on a drawn node if it has room there (in a full cluster, on any node with room), else unchanged."""
    first = draw(st.sampled_from([*room] if kind.is_full else ["", *room]))
    for node in [first, *room] if kind.is_full else [first]:
        if _reserve(task.request, room.get(node, {})):
            return replace(task, status=draw(st.sampled_from(STATUSES)), node=node)
    return task


def _reserve(request: Resources, room: dict[str, float]) -> bool:
    requested = {"pods": 1.0} | dict(request)
    if any(room.get(name, 0.0) < much for name, much in requested.items()):
        return False
    for name, much in requested.items():
        room[name] -= much
    return True
