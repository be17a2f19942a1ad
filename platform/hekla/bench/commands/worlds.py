"""The measured scenarios by name. Each builds a cluster state for a number of nodes and pods."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from types import MappingProxyType
from typing import Any

from hekla.bench.commands.parts import CORES, DEFAULT_QUEUE, asking, cluster, gang, machines, running
from hekla.domain.phases import GangPhase
from hekla.domain.taints import Taint
from hekla.engine.constraints import NodeSelectorTerm, PodAffinityTerm, PodConstraints, PodSelector, Requirement
from hekla.engine.decisions import Decisions
from hekla.engine.model import (
    ClusterState,
    HyperNode,
    NetworkTopology,
    NodeSpec,
    PodGroupSpec,
    PodSpec,
    PodStatus,
    QueueSpec,
    Toleration,
)
from hekla.engine.policy import DEFAULT_POLICY_TEXT

_GANG, _JOB, _BLOCKED_GANG = 1000, 10, 2000
_CLASSES, _ZONES, _QUEUES, _WEIGHTS = 10, 8, 100, 4
_MODELS, _SERVICES, _HOST = 3, 16, "kubernetes.io/hostname"
_RACK, _HALL, _SITE, _CLOSE_GANG = 20, 200, 2000, 100
_TOPOLOGIES = (NetworkTopology(highest_tier=1), NetworkTopology(highest_tier=2), NetworkTopology(is_hard=False))
_SMALL_PART = 100
"""One of this many jobs changes, or one of this many pods fits."""

GoOn = Callable[[ClusterState, Decisions], ClusterState]


def _same_again(state: ClusterState, _decisions: Decisions) -> ClusterState:
    return state


@dataclass(frozen=True, slots=True)
class Setting:
    """A cluster state, the changes of the default policy, and `go_on`, which computes the state of the next cycle."""

    state: ClusterState
    actions: str = "enqueue, allocate, backfill"
    go_on: GoOn = _same_again
    plugin: str = ""
    """An additional plugin in the last tier."""

    @property
    def policy_text(self) -> str:
        """The default policy with these actions and this plugin."""
        first, rest = DEFAULT_POLICY_TEXT.split("\n", 1)
        more = f"  - name: {self.plugin}\n" if self.plugin else ""
        return f'{first.partition(":")[0]}: "{self.actions}"\n{rest}{more}'


def _gang(nodes: int, pods: int) -> Setting:
    return Setting(cluster(machines(nodes), [gang("gang", pods, asking())]))


def _gangs(nodes: int, pods: int) -> Setting:
    sizes = [min(_GANG, pods - start) for start in range(0, pods, _GANG)]
    return Setting(cluster(machines(nodes), [gang(f"gang-{at}", size, asking()) for at, size in enumerate(sizes)]))


def _classes(nodes: int, pods: int) -> Setting:
    requests = [asking(0.25 + at / 8, 1 + at % 4) for at in range(_CLASSES)]
    jobs = [gang(f"job-{at}", 1, requests[at % _CLASSES], created_at=float(at)) for at in range(pods)]
    return Setting(cluster(machines(nodes), jobs))


def _distinct(nodes: int, pods: int) -> Setting:
    """Pods that all differ in requests and constraints. Half of the nodes have taints, all have zones and models."""
    labelled = [
        replace(
            node,
            labels={"zone": f"z{at % _ZONES}", "model": f"m{at % _MODELS}", _HOST: node.name},
            taints=(Taint("team", f"t{at % 4}"),) if at % 2 else (),
        )
        for at, node in enumerate(machines(nodes))
    ]
    jobs = [
        gang(f"job-{at}", 1, asking(0.5 + at / 1000, 1 + at / 500), task=_own_constraints(at)) for at in range(pods)
    ]
    return Setting(cluster(tuple(labelled), jobs))


def _own_constraints(at: int) -> dict[str, Any]:
    """Labels and constraints of a pod: node selector or node affinity in turn, and affinity to its service's pods."""
    service = f"s{at % _SERVICES}"
    by_affinity = at % 2 == 0
    return {
        "labels": {"service": service},
        "tolerations": (Toleration("team", value=f"t{at % 4}"),),
        "node_selector": {} if by_affinity else {"zone": f"z{at % _ZONES}", "model": f"m{at % _MODELS}"},
        "constraints": replace(_among_pods(at, service), **_among_nodes(at) if by_affinity else {}),
    }


def _among_nodes(at: int) -> dict[str, Any]:
    """Node affinity: requires one of two zones and excludes a model; prefers one of the other two models."""
    zones = Requirement("zone", "In", (f"z{at % _ZONES}", f"z{(at + 1) % _ZONES}"))
    other = Requirement("model", "NotIn", (f"m{at % _MODELS}",))
    rather = NodeSelectorTerm((Requirement("model", "In", (f"m{(at + 1) % _MODELS}",)),))
    return {
        "required_node_terms": (NodeSelectorTerm((zones, other)),),
        "preferred_node_terms": ((1 + at % 100, rather),),
    }


def _among_pods(at: int, service: str) -> PodConstraints:
    """Pod affinity in turn: one pod per host, all in one zone, preferably spread over zones, or none."""
    own = PodSelector((Requirement("service", "In", (service,)),), frozenset({""}))
    return (
        PodConstraints(pod_anti_affinity=(PodAffinityTerm(own, _HOST),)),
        PodConstraints(pod_affinity=(PodAffinityTerm(own, "zone"),)),
        PodConstraints(preferred_pod_affinity=((-10, PodAffinityTerm(own, "zone")),)),
        PodConstraints(),
    )[at % 4]


def _churn(nodes: int, pods: int) -> Setting:
    """All pods run. In each cycle 1% of the jobs end, and as many new ones arrive."""
    room, numbers = machines(nodes), count(pods)
    jobs = [running(f"job-{at}", _JOB, asking(), room[at % nodes].name) for at in range(max(pods // _JOB, 1))]

    def go_on(state: ClusterState, decisions: Decisions) -> ClusterState:
        leaving = max(len(state.jobs) // _SMALL_PART, 1)
        coming = tuple(gang(f"job-{next(numbers)}", _JOB, asking()) for _ in range(leaving))
        return replace(state, jobs=_with_binds(state, decisions)[leaving:] + coming)

    return Setting(cluster(room, jobs), go_on=go_on)


def _with_binds(state: ClusterState, decisions: Decisions) -> tuple[PodGroupSpec, ...]:
    """The jobs with their bound pods running. Jobs without a bind stay the same objects."""
    nodes = {bind.pod: bind.node for bind in decisions.binds}
    bound = {bind.job for bind in decisions.binds}

    def running(task: PodSpec) -> PodSpec:
        return replace(task, status=PodStatus.RUNNING, node=nodes[task.uid]) if task.uid in nodes else task

    return tuple(
        replace(job, phase=GangPhase.RUNNING, pods=tuple(map(running, job.pods))) if job.uid in bound else job
        for job in state.jobs
    )


def _pending(nodes: int, pods: int) -> Setting:
    """Admitted gangs of ten, with free resources for 1% of the pods."""
    return _waiting(nodes, pods, _JOB)


def _single(nodes: int, pods: int) -> Setting:
    """As `_pending`, with jobs of one pod."""
    return _waiting(nodes, pods, 1)


def _waiting(nodes: int, pods: int, size: int) -> Setting:
    fit = min(pods // _SMALL_PART, nodes * (CORES - 1))
    jobs = []
    for at, node in enumerate(room := machines(nodes)):
        free = fit * (at + 1) // nodes - fit * at // nodes
        jobs.append(running(f"full-{at}", 1, asking(CORES - free), node.name))
    jobs += [gang(f"job-{at}", size, asking(), created_at=float(at)) for at in range(max(pods // size, 1))]
    return Setting(cluster(room, jobs))


def _full(nodes: int, queue: str) -> list[PodGroupSpec]:
    """A job on each node that fills it with one-core pods, with a minimum of one pod."""
    return [
        running(f"runner-{at}", CORES, asking(1, 1), node.name, least=1, queue=queue)
        for at, node in enumerate(machines(nodes))
    ]


def _preempt(nodes: int, pods: int) -> Setting:
    """Urgent gangs of ten in the same queue. Each pod requests two cores, so two pods must be evicted for it."""
    task = {"priority": 1000}
    wanting = [gang(f"urgent-{at}", _JOB, asking(2, 1), priority=1000, task=task) for at in range(max(pods // _JOB, 1))]
    return Setting(cluster(machines(nodes), _full(nodes, DEFAULT_QUEUE) + wanting), "enqueue, allocate, preempt")


def _reclaim(nodes: int, pods: int) -> Setting:
    """One queue has borrowed everything. The other one, with the same weight, reclaims part of its share."""
    queues = QueueSpec("lender"), QueueSpec("borrower")
    wanting = [gang(f"own-{at}", _JOB, asking(1, 1), queue="lender") for at in range(max(pods // _JOB, 1))]
    jobs = _full(nodes, "borrower") + wanting
    return Setting(cluster(machines(nodes), jobs, *queues), "enqueue, allocate, reclaim")


def _queues(nodes: int, pods: int) -> Setting:
    """A hundred queues with different weights, which together request more than the cluster has."""
    queues = tuple(QueueSpec(f"queue-{at:03}", weight=at % _WEIGHTS + 1) for at in range(_QUEUES))
    jobs = [gang(f"job-{at}", 1, asking(), queue=queues[at % _QUEUES].name) for at in range(pods)]
    return Setting(cluster(machines(nodes), jobs, *queues))


def _blocked(nodes: int, pods: int) -> Setting:
    """A gang that is too large is first in the queue. Small jobs behind it use the free resources."""
    large = gang("large", max(_BLOCKED_GANG, nodes * CORES), asking(2), priority=1)
    return Setting(cluster(machines(nodes), [large, *(gang(f"job-{at}", 1, asking()) for at in range(pods))]))


def _close(nodes: int, pods: int) -> Setting:
    """Gangs that require one rack or one hall, or prefer to be close. The nodes of every other rack are half full."""
    room = machines(nodes)
    half = [node for rack in _in_parts(room, _RACK)[1::2] for node in rack]
    jobs = [running(f"half-{at}", 1, asking(CORES / 2), node.name) for at, node in enumerate(half)]
    sizes = [min(_CLOSE_GANG, pods - start) for start in range(0, pods, _CLOSE_GANG)]
    jobs += [
        gang(f"gang-{at}", size, asking(4), topology=_TOPOLOGIES[at % len(_TOPOLOGIES)])
        for at, size in enumerate(sizes)
    ]
    state = replace(cluster(room, jobs), hyper_nodes=_hyper_nodes(room))
    return Setting(state, plugin="network-topology-aware")


def _hyper_nodes(room: Sequence[NodeSpec]) -> tuple[HyperNode, ...]:
    """Racks of 20 nodes, halls of 10 racks, sites of 10 halls."""
    return tuple(
        HyperNode(f"{kind}-{at}", tier, frozenset(node.name for node in inside))
        for tier, (kind, size) in enumerate((("rack", _RACK), ("hall", _HALL), ("site", _SITE)), 1)
        for at, inside in enumerate(_in_parts(room, size))
    )


def _in_parts(room: Sequence[NodeSpec], size: int) -> list[Sequence[NodeSpec]]:
    return [room[at : at + size] for at in range(0, len(room), size)]


@dataclass(frozen=True, slots=True)
class Scenario:
    """How to build the state, the default sizes (nodes, pods), a description, and whether it takes only seconds."""

    build: Callable[[int, int], Setting]
    sizes: tuple[tuple[int, int], ...]
    text: str
    is_quick: bool = False


SCENARIOS: Mapping[str, Scenario] = MappingProxyType({
    "gang": Scenario(_gang, ((1000, 1000),), "one gang on an empty cluster", is_quick=True),
    "size": Scenario(_gang, ((1000, 1000), (10_000, 1000)), "one gang, ten times the machines", is_quick=True),
    "gangs": Scenario(_gangs, ((10_000, 10_000),), "gangs of 1,000"),
    "classes": Scenario(_classes, ((1000, 10_000),), "one-pod jobs of ten classes"),
    "distinct": Scenario(
        _distinct, ((1000, 1000), (10_000, 1000)), "one-pod jobs, each with conditions of its own", is_quick=True
    ),
    "churn": Scenario(_churn, ((10_000, 100_000),), "pods that run, of which 1 % changed"),
    "queues": Scenario(_queues, ((100, 10_000),), "one-pod jobs of a hundred weighted queues"),
    "blocked": Scenario(_blocked, ((100, 10_000),), "small jobs behind a gang that is too large"),
    "pending": Scenario(_pending, ((1000, 100_000),), "gangs of ten that wait, of which 1 % fit"),
    "flood": Scenario(_pending, ((1000, 1_000_000),), "the same, a million pods"),
    "single": Scenario(_single, ((1000, 100_000),), "one-pod jobs that wait, of which 1 % fit"),
    "singles": Scenario(_single, ((1000, 1_000_000),), "the same, a million pods"),
    "preempt": Scenario(_preempt, ((1000, 1000),), "urgent gangs of ten on a full cluster"),
    "reclaim": Scenario(_reclaim, ((1000, 1000),), "gangs of ten whose share others borrowed"),
    "topology": Scenario(_close, ((10_000, 10_000),), "gangs of 100 that must lie in a rack or a hall, or rather do"),
})  # fmt: skip
