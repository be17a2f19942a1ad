"""Random small clusters for tests that must hold in any: full or empty, fair or not, with all kinds of conditions."""

from hypothesis import strategies as st

from hekla.domain.phases import GangPhase
from hekla.domain.resources import Resources
from hekla.engine.model import ClusterState, Job, Node, Queue, Taint, Task, TaskStatus, Toleration

CORE, GIB = 1000.0, 2.0**30
TAINTS = (Taint("team", "a"), Taint("team", "b", "NoExecute"), Taint("soft", "", "PreferNoSchedule"))
TOLERATIONS = (
    Toleration("team", value="a"), Toleration("team", "Exists"), Toleration("team", value="b", effect="NoSchedule"),
)  # fmt: skip
PHASES = (GangPhase.PENDING, GangPhase.INQUEUE)


def amounts(cpu: float, memory: float, pods: float = 0) -> Resources:
    return Resources({"cpu": cpu * CORE, "memory": memory * GIB, "pods": pods})


@st.composite
def clusters(draw: st.DrawFn, *, free_riders: bool = False, full: bool = False) -> ClusterState:
    """`free_riders`: some tasks ask for nothing. `full`: half of the jobs run wherever there is room, the others wait."""
    nodes = draw(_nodes(not full))
    queues = draw(_queues())
    room = {node.name: dict(node.allocatable) for node in nodes}
    count = draw(st.integers(4 if full else 1, 8))
    jobs = [
        draw(_jobs(number, queues, room, free_riders, (number < count / 2) if full else None))
        for number in range(count)
    ]
    return ClusterState(tuple(nodes), tuple(queues), tuple(jobs))


@st.composite
def _nodes(draw: st.DrawFn, are_picky: bool) -> list[Node]:
    names = draw(st.permutations([f"n{at}" for at in range(draw(st.integers(1, 5 if are_picky else 3)))]))
    return [
        Node(
            name,
            amounts(
                draw(st.integers(1, 8 if are_picky else 4)),
                draw(st.integers(4, 16)),
                draw(st.sampled_from([2, 5, 110] if are_picky else [6, 110])),
            ),
            labels={"zone": draw(st.sampled_from("xy"))},
            taints=tuple(draw(st.lists(st.sampled_from(TAINTS), max_size=int(are_picky)))),
            unschedulable=are_picky and draw(st.integers(0, 9)) == 0,
        )
        for name in names
    ]


@st.composite
def _queues(draw: st.DrawFn) -> list[Queue]:
    guarantee = st.none() | st.builds(amounts, st.integers(0, 2), st.integers(0, 2))
    capability = st.none() | st.builds(amounts, st.integers(2, 8), st.integers(2, 16))
    return [
        Queue(
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
    draw: st.DrawFn,
    number: int,
    queues: list[Queue],
    room: dict[str, dict[str, float]],
    free_riders: bool,
    fills: bool | None,
) -> Job:
    name, priority = f"j{number}", draw(st.integers(0, 2))
    roles = {role: draw(st.integers(2 if fills else 1, 4)) for role in draw(st.sampled_from(["w", "w", "pw"]))}
    preemptable = draw(st.integers(0, 4)) > 0
    runs = draw(st.booleans()) if fills is None else fills
    tasks: list[Task] = []
    for role, pods in roles.items():
        request = draw(st.builds(amounts, st.sampled_from([0.5, 1, 2, 3]), st.sampled_from([0.5, 1, 2, 4])))
        if free_riders and draw(st.integers(0, 3)) == 0:
            request = Resources()
        more = {
            "preemptable": preemptable,
            "never_preempts": draw(st.integers(0, 9)) == 0,
            "priority_class": draw(st.sampled_from(["", "", "", "system-node-critical"])),
            "node_selector": draw(st.sampled_from([{}, {}, {"zone": "x"}])),
            "tolerations": draw(st.sampled_from([(), *((one,) for one in TOLERATIONS)])),
        }
        for at in range(pods):
            first = draw(st.sampled_from(list(room) if fills else ["", *room])) if runs else ""
            where = next((node for node in ([first, *room] if fills else [first]) if _seat(request, room, node)), "")
            status = TaskStatus.PENDING
            if where:
                status = draw(st.sampled_from([TaskStatus.RUNNING] * 4 + [TaskStatus.BOUND, TaskStatus.RELEASING]))
            uid = f"{name}-{role}-{at}"
            tasks.append(
                Task(uid, uid, role, request, status, where, priority + draw(st.sampled_from([0, 0, 0, 1])), **more)
            )
    minimums = {role: draw(st.integers(0, 1 if fills else pods)) for role, pods in roles.items()}
    least = draw(st.sampled_from([sum(minimums.values()), 1, *([] if fills else [len(tasks)])]))
    has_started = any(task.node for task in tasks)
    return Job(
        uid=f"ns/{name}",
        name=name,
        namespace="ns",
        queue=draw(st.sampled_from(queues)).name,
        priority=priority,
        min_available=max(least, 1),
        min_task_member=draw(st.sampled_from([minimums, {}])),
        min_resources=tasks[0].request * max(least, 1) if draw(st.booleans()) else None,
        phase=GangPhase.RUNNING if has_started else draw(st.sampled_from(PHASES)),
        created_at=float(draw(st.integers(0, 2))),
        tasks=tuple(tasks),
    )


def _seat(request: Resources, room: dict[str, dict[str, float]], node: str) -> bool:
    """Whether the node has room, which then shrinks."""
    wanted = {"pods": 1.0} | dict(request)
    if not node or any(room[node].get(name, 0.0) < much for name, much in wanted.items()):
        return False
    for name, much in wanted.items():
        room[node][name] -= much
    return True
