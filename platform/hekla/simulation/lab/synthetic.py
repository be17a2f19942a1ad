"""Synthetic workloads for measurements and tests: jobs of several queues and tenants at random times, from a seed."""

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from hekla.domain.phases import GangPhase
from hekla.domain.resources import Resources
from hekla.engine.model import ClusterState, NodeSpec, PodGroupSpec, PodSpec, QueueSpec
from hekla.simulation.lab.workload import HOUR, SECOND, Workload, WorkloadJob, in_order

GPU = "nvidia.com/gpu"
WEEK = 7 * 24 * HOUR
_CARDS = 8
_NODE = Resources.parse({"cpu": "96", "memory": "1024Gi", "pods": "110", GPU: str(_CARDS)})
_STARTS = 1_700_000_000 * SECOND
_SIZES = ((1, 1), (1, 2), (1, 4), (1, 8), (2, 8), (4, 8))
"""Pods of a job, and cards of each pod."""
_ODDS = (50, 15, 12, 14, 6, 3)
"""How frequent the sizes are: as on published clusters, most jobs are small and most card hours are of large ones."""


@dataclass(frozen=True, slots=True)
class SyntheticSize:
    """How large a synthetic workload is. `load`: requested card hours as a part of the cluster's."""

    jobs: int = 10_000
    nodes: int = 64
    queues: int = 4
    tenants: int = 12
    load: float = 0.85
    period: int = WEEK


def workload(size: SyntheticSize, seed: int = 1) -> Workload:
    """A workload of this size. Run times are spread over two orders of magnitude, and scaled to the load."""
    random = Random(seed)  # noqa: S311  (no secret)
    queues = [QueueSpec(f"queue-{at}", weight=1 + at % 3) for at in range(size.queues)]
    shapes = random.choices(_SIZES, _ODDS, k=size.jobs)
    times = [random.lognormvariate(0.0, 1.3) for _ in shapes]
    wanted = sum(pods * cards * run for (pods, cards), run in zip(shapes, times, strict=True))
    scale = size.load * size.nodes * _CARDS * size.period / wanted
    jobs = [
        job(
            f"job-{at}",
            _STARTS + int(random.random() * size.period),
            max(SECOND, int(times[at] * scale)),
            pods=pods,
            cards=cards,
            queue=queues[(tenant := random.randrange(size.tenants)) % size.queues].name,
            tenant=f"team-{tenant}",
        )
        for at, (pods, cards) in enumerate(shapes)
    ]
    state = ClusterState(nodes(size.nodes), tuple(queues), ())
    return Workload(_STARTS, _STARTS + size.period, state, in_order(jobs))


def nodes(count: int, prefix: str = "node") -> tuple[NodeSpec, ...]:
    """Uniform nodes of eight cards."""
    return tuple(NodeSpec(f"{prefix}-{at:04}", _NODE) for at in range(count))


def job(
    uid: str,
    submitted: int,
    run: int,
    *,
    pods: int = 1,
    cards: int = 1,
    queue: str = "queue-0",
    tenant: str = "team-0",
    priority: int = 0,
) -> WorkloadJob:
    """A gang of uniform pods, each with so many cards and in proportion CPU and memory. Times in milliseconds."""
    request = Resources.parse({"cpu": str(8 * cards), "memory": f"{64 * cards}Gi", "pods": "1", GPU: str(cards)})
    group = PodGroupSpec(
        uid=uid,
        name=uid,
        queue=queue,
        namespace=tenant,
        priority=priority,
        min_available=pods,
        min_task_member={"worker": pods},
        min_resources=request * pods,
        phase=GangPhase.PENDING,
        created_at=submitted / SECOND,
        pods=tuple(_pods(uid, pods, request, priority)),
    )
    return WorkloadJob(group, submitted, ((run,),) * pods, tenant)


def _pods(uid: str, count: int, request: Resources, priority: int) -> Sequence[PodSpec]:
    return [PodSpec(f"{uid}/{at}", f"{uid}-worker-{at}", "worker", request, priority=priority) for at in range(count)]
