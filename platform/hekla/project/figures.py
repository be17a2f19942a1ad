"""What the machines and queues hold now, for the pages that show it."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from hekla.apps.accounts.models import User
from hekla.apps.clusters import selectors as clusters
from hekla.apps.clusters.models import Node
from hekla.apps.jobs import selectors as jobs
from hekla.apps.jobs import wording
from hekla.apps.jobs.facts import spec_of
from hekla.apps.jobs.models import Pod
from hekla.apps.queues import selectors as queues
from hekla.apps.queues.models import Queue
from hekla.domain.resources import Resources

_SHOWN = ("cpu", "memory", "nvidia.com/gpu")


@dataclass(frozen=True, slots=True)
class Bar:
    """Use of one resource: `used` of `capacity`, in thousandths or MiB; `words` for people."""

    name: str
    used: int
    capacity: int
    words: str


@dataclass(frozen=True, slots=True)
class Occupancy:
    """What a page's figures are counted from, read once: the machines and the pods that hold something on them."""

    machines: list[Node]
    pods: list[Pod]

    @classmethod
    def now(cls) -> Self:
        machines = list(clusters.nodes())
        return cls(machines, jobs.usage_by_node(sorted({node.cluster_id for node in machines})))


@dataclass
class NodeView:
    """A machine with what is on it."""

    node: Node
    allocatable: Resources
    used: Resources = field(default_factory=Resources)
    pods: list[Pod] = field(default_factory=list)

    @property
    def bars(self) -> list[Bar]:
        return bars(self.used, self.allocatable)

    @property
    def free(self) -> str:
        return wording.amounts(self.allocatable - self.used)


@dataclass
class QueueView:
    """A queue with what is in it. `limit`: its capability, else all of its cluster."""

    queue: Queue
    limit: Resources
    used: Resources = field(default_factory=Resources)
    running: int = 0
    waiting: int = 0

    @property
    def bars(self) -> list[Bar]:
        return bars(self.used, self.limit)


def bars(used: Resources, capacity: Resources) -> list[Bar]:
    """A bar for each resource that there is."""
    return [_bar(name, used.amount(name), capacity.amount(name)) for name in _SHOWN if capacity.amount(name)]


def _bar(name: str, used: float, capacity: float) -> Bar:
    scale = 2**20 if name == "memory" else 1
    words = wording.part(Resources({name: used}), Resources({name: capacity}), name)
    return Bar(name, int(used // scale), max(int(capacity // scale), 1), words)


def nodes(visible_pods_of: User, occupancy: Occupancy | None = None) -> list[NodeView]:
    """All machines. The pods on them are named only where the person may see their job."""
    occupancy = occupancy or Occupancy.now()
    views = {(n.cluster_id, n.name): NodeView(n, Resources.parse(n.allocatable)) for n in occupancy.machines}
    visible = set(jobs.visible_to(visible_pods_of).exclude(finished_at__isnull=False).values_list("pk", flat=True))
    for pod in occupancy.pods:
        view = views.get((pod.job.cluster_id, pod.node))
        if view is not None:
            view.used += request_of(pod)
            if pod.job_id in visible:
                view.pods.append(pod)
    return list(views.values())


def request_of(pod: Pod) -> Resources:
    """What a pod holds."""
    return spec_of(pod.job).task(pod.task).request + {"pods": 1.0}


def queue_views(user: User, occupancy: Occupancy | None = None) -> list[QueueView]:
    """The queues that the person may see."""
    occupancy = occupancy or Occupancy.now()
    found = list(queues.visible_to(user))
    whole = _by_cluster(occupancy.machines)
    views = {q.pk: QueueView(q, _limit(q, whole)) for q in found}
    running: dict[int, set[int]] = defaultdict(set)
    for pod in occupancy.pods:
        if pod.job.queue_id in views:
            views[pod.job.queue_id].used += request_of(pod)
            running[pod.job.queue_id].add(pod.job_id)
    waiting = jobs.waiting_in(list(views))
    for pk, view in views.items():
        view.running, view.waiting = len(running[pk]), waiting.get(pk, 0)
    return list(views.values())


def _by_cluster(machines: Sequence[Node]) -> dict[int, Resources]:
    whole: dict[int, Resources] = defaultdict(Resources)
    for node in machines:
        whole[node.cluster_id] += Resources.parse(node.allocatable)
    return whole


def _limit(queue: Queue, whole: dict[int, Resources]) -> Resources:
    cluster, bound = whole.get(queue.cluster_id, Resources()), Resources.parse(queue.capability)
    return Resources({n: min(amount, bound.get(n, amount)) for n, amount in cluster.items()})


def free_slots(views: Sequence[NodeView]) -> list[dict[str, Any]]:
    """How many machines can still take 8, 4, 2, 1 GPUs at once; nothing where there are none."""
    free = [view.allocatable.amount("nvidia.com/gpu") - view.used.amount("nvidia.com/gpu") for view in views]
    if not any(view.allocatable.amount("nvidia.com/gpu") for view in views):
        return []
    rows = [{"size": size, "nodes": sum(n >= size * 1000 for n in free)} for size in (8, 4, 2, 1)]
    most = max(1, *(row["nodes"] for row in rows))
    return [row | {"most": most} for row in rows]


def total_free(views: Sequence[NodeView]) -> list[str]:
    """What is free altogether, resource by resource."""
    free = sum((v.allocatable - v.used for v in views if v.node.is_ready and not v.node.is_cordoned), Resources())
    return [wording.amounts(Resources({name: free.amount(name)})) for name in _SHOWN if free.amount(name)]
