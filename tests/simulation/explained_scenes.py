"""For each kind of reason a cluster in which a job waits for it, with the sentence, and what makes the job start."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from hekla.apps.jobs.models import Job
from hekla.bench.explanations.offers import EVICTING
from hekla.bench.explanations.world import DEFAULT, ExplainedCluster, cluster, job_spec
from hekla.domain.resources import Resources
from hekla.domain.taints import Taint
from hekla.engine.model import EACH_OWNER, ClusterState, HyperNode, QueueSpec, ResourceQuota, TenantQuota
from hekla.engine.policy import DEFAULT_POLICY_TEXT

_ALLOCATE = """\
actions: "{actions}"
tiers:
- plugins: [{{name: priority}}, {{name: gang}}, {{name: predicates}}{more}]
"""
PLAIN = _ALLOCATE.format(actions="allocate", more="")
"""Without limits on admission: jobs wait for nodes."""
_CAPACITY = _ALLOCATE.format(actions="enqueue, allocate", more=", {name: capacity}")
_TREE = _ALLOCATE.format(actions="enqueue, allocate", more=", {name: capacity, enableHierarchy: true}")
_PROPORTION = _ALLOCATE.format(actions="enqueue, allocate", more=", {name: proportion}")
_OVERCOMMIT = _ALLOCATE.format(actions="enqueue, allocate", more=", {name: overcommit}")
_SHARES = _ALLOCATE.format(actions="allocate", more=", {name: proportion}")
_NAMESPACES = _ALLOCATE.format(actions="enqueue, allocate", more=", {name: resourcequota}")
_NEVER = " The job can never start with its current settings."


@dataclass(frozen=True, slots=True)
class Scene:
    """A cluster and its pending job.

    `sentence`: the first reason; `further`: sentences among its other reasons; `holders`: the names of the jobs that
    hold what it lacks; `ends`: the jobs after whose end it starts; `change`: the cluster in which it starts. With
    neither, it does not start even when it is alone.
    """

    world: ExplainedCluster
    job: Job
    sentence: str
    holders: frozenset[str] = frozenset()
    ends: Sequence[Job] = ()
    change: ClusterState | None = None
    further: tuple[str, ...] = ()


def _world(*sizes: Mapping[str, object], policy: str = PLAIN, **more: object) -> ExplainedCluster:
    return ExplainedCluster(cluster(*sizes, **more), policy)  # type: ignore[arg-type]


def _one_node() -> Scene:
    world = _world({"cpu": "2"}, policy=DEFAULT_POLICY_TEXT)
    hog = world.submit(job_spec("hog", cpu="1500m"))
    job = world.submit(job_spec(cpu="2"))
    return Scene(world, job, "Waiting for 2 CPU. 0.5 of 2 CPU are free.", frozenset({"hog"}), [hog])


def _admitted_first() -> Scene:
    world = _world({}, policy=_OVERCOMMIT)
    hog = world.submit(job_spec("hog", cpu="3"))
    world.submit(job_spec("next", cpu="1500m"))
    job = world.submit(job_spec(cpu="2"))
    sentence = "Waiting for 2 CPU. 1 of 4 CPU are free. Jobs admitted before leave 0 CPU of them."
    return Scene(world, job, sentence, frozenset({"hog"}), [hog])


def _larger_than_cluster() -> Scene:
    world = _world({}, policy=DEFAULT_POLICY_TEXT)
    job = world.submit(job_spec(replicas=3, cpu="2"))
    return Scene(world, job, "Needs 6 CPU. The cluster is smaller than that." + _NEVER)


def _memory() -> Scene:
    world = _world({"memory": "4Gi"})
    hog = world.submit(job_spec("hog", resources={"memory": "3Gi"}))
    job = world.submit(job_spec(resources={"memory": "2Gi"}))
    sentence = "Waiting for 2 GiB memory. 1 GiB of 4 GiB memory are free."
    return Scene(world, job, sentence, frozenset({"hog"}), [hog])


def _fragments() -> Scene:
    world = _world({"nvidia.com/gpu": "4"}, {"nvidia.com/gpu": "4"})
    hogs = [world.submit(job_spec(f"hog-{at}", cpu="3", resources={"nvidia.com/gpu": "3"})) for at in range(2)]
    job = world.submit(job_spec(resources={"nvidia.com/gpu": "2"}))
    sentence = "Waiting for 2 GPU on one node. 2 of 8 GPU are free, at most 1 GPU on one node."
    return Scene(world, job, sentence, frozenset({"hog-0", "hog-1"}), hogs[:1])


def _different_lacks() -> Scene:
    last = {"cpu": "6", "memory": "6Gi", "labels": {"zone": "c"}}
    world = _world({"cpu": "2", "memory": "8Gi"}, {"cpu": "8", "memory": "2Gi"}, last)
    big = world.submit(job_spec("big", cpu="6", node_selector={"zone": "c"}))
    job = world.submit(job_spec(cpu="4", resources={"memory": "4Gi"}))
    sentence = (
        "Waiting for 4 CPU, 4 GiB memory on one node. 10 of 16 CPU, 16 GiB of 16 GiB memory are free, at most 8 CPU, "
        "8 GiB memory on one node."
    )
    return Scene(world, job, sentence, frozenset({"big"}), [big])


def _tainted_node() -> Scene:
    world = _world({}, {"cpu": "16", "taints": (Taint("team", "red"),)})
    hog = world.submit(job_spec("hog", cpu="3"))
    job = world.submit(job_spec(cpu="2"))
    sentence = "Waiting for 2 CPU. 1 of 4 CPU are free. Not usable: 1 node: untolerated taint team."
    return Scene(world, job, sentence, frozenset({"hog"}), [hog])


def _elsewhere_does_not_matter() -> Scene:
    world = _world({"labels": {"zone": "a"}}, {"labels": {"zone": "b"}})
    here, there = {"zone": "a"}, {"zone": "b"}
    hog = world.submit(job_spec("hog", cpu="3", node_selector=here))
    world.submit(job_spec("far", cpu="4", node_selector=there))
    job = world.submit(job_spec(cpu="2", node_selector=here))
    sentence = "Waiting for 2 CPU. 1 of 4 CPU are free. Not usable: 1 node: labels do not match."
    return Scene(world, job, sentence, frozenset({"hog"}), [hog])


def _pods_of_node() -> Scene:
    world = _world({"pods": "2"})
    small = [world.submit(job_spec(f"small-{at}", cpu="100m")) for at in range(2)]
    job = world.submit(job_spec(cpu="100m"))
    sentence = "Waiting for 1 pod. 0 of 2 pods are free."
    return Scene(world, job, sentence, frozenset({"small-0", "small-1"}), small[:1])


def _no_such_node() -> Scene:
    world = _world({"labels": {"zone": "a"}})
    job = world.submit(job_spec(node_selector={"zone": "moon"}))
    sentence = "No node matches its constraints (1 node: labels do not match)."
    return Scene(world, job, sentence + _NEVER)


def _cordoned() -> Scene:
    world = _world({"unschedulable": True})
    job = world.submit(job_spec())
    sentence = "No node matches its constraints (1 node: unschedulable)."
    return Scene(world, job, sentence, change=cluster({}))


def _larger_than_node() -> Scene:
    world = _world({}, {})
    job = world.submit(job_spec(cpu="6"))
    return Scene(world, job, "Needs 6 CPU on one node. No node has more than 4 CPU." + _NEVER)


def _gang() -> Scene:
    world = _world({})
    hog = world.submit(job_spec("hog", cpu="2"))
    job = world.submit(job_spec(replicas=3))
    sentence = "Its pods start together. There is room for 2 of 3, each with 1 CPU. 2 of 4 CPU are free."
    return Scene(world, job, sentence, frozenset({"hog"}), [hog])


def _second_gang() -> Scene:
    world = _world({})
    hog = world.submit(job_spec("hog", cpu="2"))
    world.submit(job_spec("before", replicas=3))
    job = world.submit(job_spec(replicas=4))
    sentence = "Its pods start together. There is room for 2 of 4, each with 1 CPU. 2 of 4 CPU are free."
    return Scene(world, job, sentence, frozenset({"hog"}), [hog, *world.rows.values()][:3])


def _more_pods() -> Scene:
    world = _world({})
    hog = world.submit(job_spec("hog", cpu="2"))
    job = world.submit(job_spec(replicas=4, min_available=1, cpu="1500m"))
    sentence = "3 pods are waiting for 1.5 CPU each. 0.5 of 4 CPU are free."
    return Scene(world, job, sentence, frozenset({"hog"}), [hog])


def _queue_limit() -> Scene:
    limited = QueueSpec("small", capability=Resources.parse({"cpu": "2"}))
    world = _world({"cpu": "8"}, policy=_PROPORTION, queues=(QueueSpec(DEFAULT), limited))
    world.submit(job_spec("elsewhere", cpu="3"))
    inside = world.submit(job_spec("inside", cpu="1500m", queue="small"))
    job = world.submit(job_spec(queue="small"))
    sentence = "Waiting for 1 CPU. The limit of its queue leaves 0.5 of 2 CPU."
    return Scene(world, job, sentence, frozenset({"inside"}), [inside])


def _above_queue_limit() -> Scene:
    limited = QueueSpec(DEFAULT, capability=Resources.parse({"cpu": "2"}))
    world = _world({"cpu": "8"}, policy=_CAPACITY, queues=(limited,))
    job = world.submit(job_spec(cpu="3"))
    return Scene(world, job, "Waiting for 3 CPU. The limit of its queue leaves 2 of 2 CPU." + _NEVER)


def _parent_limit() -> Scene:
    four = Resources.parse({"cpu": "4"})
    tree = (
        QueueSpec("root"),
        QueueSpec("lab", capability=four),
        QueueSpec("a", parent="lab"),
        QueueSpec("b", parent="lab"),
    )
    world = _world({"cpu": "8"}, policy=_TREE, queues=(*tree, QueueSpec("out")))
    world.submit(job_spec("out", cpu="2", queue="out"))
    inside = world.submit(job_spec("inside", cpu="3", queue="a"))
    job = world.submit(job_spec(cpu="2", queue="b"))
    sentence = "Waiting for 2 CPU. The limit of the parent queue lab leaves 1 of 4 CPU."
    return Scene(world, job, sentence, frozenset({"inside"}), [inside])


def _two_queues(cpu: str, pods: str = "20") -> tuple[ExplainedCluster, Job]:
    """A job in one of two queues with equal shares; the other queue asks for its share, and cannot use it."""
    world = _world({"cpu": "8", "pods": pods}, policy=_SHARES, queues=(QueueSpec("mine"), QueueSpec("theirs")))
    first = world.submit(job_spec("first", cpu=cpu, queue="mine"))
    world.submit(job_spec("other", cpu="6", queue="theirs", node_selector={"zone": "moon"}))
    return world, first


def _share() -> Scene:
    world, first = _two_queues("3")
    job = world.submit(job_spec(cpu="2", queue="mine"))
    sentence = "Waiting for 2 CPU. The queue has 1 of 4 CPU of its share left."
    return Scene(world, job, sentence, frozenset({"first"}), [first])


def _overused() -> Scene:
    world, first = _two_queues("4", pods="2")
    job = world.submit(job_spec(cpu="2", queue="mine"))
    sentence = "Waiting for 2 CPU. The queue uses all of its share: 0 of 4 CPU are left."
    return Scene(world, job, sentence, frozenset({"first"}), [first])


def _draining() -> Scene:
    world = _world({}, queues=(QueueSpec(DEFAULT, is_draining=True),))
    job = world.submit(job_spec())
    sentence = "The queue is draining and admits no jobs. The job can start when the queue opens."
    return Scene(world, job, sentence, change=cluster({}))


def _closed() -> Scene:
    policy = "compatibility: volcano\n" + _CAPACITY
    world = _world({}, policy=policy, queues=(QueueSpec(DEFAULT, is_open=False),))
    job = world.submit(job_spec())
    sentence = "The queue is closed. The job can start when the queue opens."
    return Scene(world, job, sentence, change=cluster({}))


def _tree_fault(sentence: str, *queues: QueueSpec) -> Scene:
    tree = QueueSpec("root"), *queues
    world = _world({}, policy=_TREE, queues=tree)
    job = world.submit(job_spec(queue=queues[0].name))
    mended = tuple(replace(queue, parent="") for queue in tree)
    return Scene(world, job, sentence + _NEVER, change=cluster({}, queues=mended))


def _cycle() -> Scene:
    sentence = "The parent queues form a cycle. Change the parent of the queue."
    return _tree_fault(sentence, QueueSpec("a", parent="b"), QueueSpec("b", parent="a"))


def _no_parent() -> Scene:
    return _tree_fault("A parent queue does not exist. Change the parent of the queue.", QueueSpec("a", parent="gone"))


def _inner_queue() -> Scene:
    sentence = "The queue has child queues. Jobs start only in leaf queues."
    return _tree_fault(sentence, QueueSpec("a"), QueueSpec("b", parent="a"))


def _quota(owner: str, whose: str, others: int) -> Scene:
    world = _world({}, tenant_quotas=(TenantQuota("1", {"cpu": 3000.0}, owner),))
    first = world.submit(job_spec("first", cpu="2"))
    world.submit(job_spec("free", cpu="1"), tenant=others, owner=2)
    job = world.submit(job_spec(cpu="1500m"))
    sentence = f"Waiting for 1.5 CPU. Quota of its {whose}: 2 of 3 CPU in use."
    return Scene(world, job, sentence, frozenset({"first"}), [first])


def _tenant_quota() -> Scene:
    return _quota("", "tenant", others=2)


def _member_quota() -> Scene:
    return _quota(EACH_OWNER, "owner in this tenant", others=1)


def _namespace_quota() -> Scene:
    world = _world({}, policy=_NAMESPACES, quotas=(ResourceQuota("1", {"cpu": 3000.0}),))
    first = world.submit(job_spec("first", cpu="2"))
    job = world.submit(job_spec(cpu="1500m"))
    sentence = "Waiting for 1.5 CPU. The quota of its tenant leaves 1 of 3 CPU."
    return Scene(world, job, sentence, frozenset({"first"}), [first])


_RACKS = HyperNode("rack-0", 1, frozenset({"n0"})), HyperNode("rack-1", 1, frozenset({"n1"}))
_CLOSE = {"mode": "hard", "highest_tier_allowed": 1}


def _racks() -> Scene:
    policy = _ALLOCATE.format(actions="allocate", more=", {name: network-topology-aware}")
    world = _world({}, {}, policy=policy, hyper_nodes=_RACKS)
    hogs = [world.submit(job_spec(f"hog-{at}", cpu="3")) for at in range(2)]
    job = world.submit(job_spec(replicas=2, network_topology=_CLOSE))
    sentence = "Its pods must be close together. No node group has room for all of them."
    return Scene(world, job, sentence, ends=hogs[:1])


def _no_topology_plugin() -> Scene:
    world = _world({}, {}, hyper_nodes=_RACKS)
    job = world.submit(job_spec(replicas=2, network_topology=_CLOSE))
    sentence = (
        "Its pods must be close together in the network. The scheduling policy has no plugin “network-topology-aware”, "
        "which sees to that. Ask an admin to add it."
    )
    return Scene(world, job, sentence + _NEVER)


def _unknown_tier() -> Scene:
    policy = _ALLOCATE.format(actions="allocate", more=", {name: network-topology-aware}")
    world = _world({}, {}, policy=policy, hyper_nodes=_RACKS)
    job = world.submit(job_spec(replicas=2, network_topology={"mode": "hard", "highest_tier_name": "hall"}))
    sentence = (
        "Its pods must be close together in the network, within a tier that this cluster does not have. Submit the job "
        "with another tier, or none."
    )
    return Scene(world, job, sentence + _NEVER)


def _lower_priority() -> Scene:
    world = _world({}, policy=EVICTING)
    hog = world.submit(job_spec("hog", replicas=4, min_available=1), priority=5)
    job = world.submit(job_spec(cpu="2"))
    further = "No other job of its queue can be preempted: 4 pods do not have lower priority."
    return Scene(world, job, "Waiting for 2 CPU. 0 of 4 CPU are free.", frozenset({"hog"}), [hog], further=(further,))


def _nobody_to_reclaim() -> Scene:
    queues = QueueSpec(DEFAULT), QueueSpec("keeps", reclaimable=False)
    world = _world({}, policy=EVICTING, queues=queues)
    hog = world.submit(job_spec("hog", replicas=4, min_available=1, queue="keeps"))
    job = world.submit(job_spec(cpu="2"))
    further = "No other queue has pods to reclaim: 4 pods belong to queues that are not reclaimable."
    return Scene(world, job, "Waiting for 2 CPU. 0 of 4 CPU are free.", frozenset({"hog"}), [hog], further=(further,))


def _polite() -> Scene:
    world = _world({}, policy=EVICTING)
    hog = world.submit(job_spec("hog", replicas=4, min_available=1))
    job = world.submit(job_spec(cpu="2"), priority=9, never_preempts=True)
    further = "1 of its pods never evicts other pods."
    return Scene(world, job, "Waiting for 2 CPU. 0 of 4 CPU are free.", frozenset({"hog"}), [hog], further=(further,))


def _above_its_share() -> Scene:
    world = _world({"cpu": "6"}, policy=EVICTING, queues=(QueueSpec("mine"), QueueSpec("theirs")))
    own = world.submit(job_spec("own", cpu="3", queue="mine"))
    other = world.submit(job_spec("other", cpu="3", queue="theirs"))
    job = world.submit(job_spec(cpu="2", queue="mine"))
    further = "Its queue cannot reclaim from others. It would exceed its deserved share."
    sentence, held = "Waiting for 2 CPU. 0 of 6 CPU are free.", frozenset({"own", "other"})
    return Scene(world, job, sentence, held, [own, other][:1], further=(further,))


SCENES: Mapping[str, Callable[[], Scene]] = MappingProxyType({
    "one node": _one_node,
    "jobs admitted before": _admitted_first,
    "larger than the cluster": _larger_than_cluster,
    "memory": _memory,
    "fragments": _fragments,
    "nodes that lack different things": _different_lacks,
    "a tainted node": _tainted_node,
    "jobs on other nodes": _elsewhere_does_not_matter,
    "pods of a node": _pods_of_node,
    "no such node": _no_such_node,
    "a cordoned node": _cordoned,
    "larger than each node": _larger_than_node,
    "a gang": _gang,
    "an equal gang before it": _second_gang,
    "more pods of a running job": _more_pods,
    "the limit of a queue": _queue_limit,
    "above the limit of its queue": _above_queue_limit,
    "the limit of a parent queue": _parent_limit,
    "the share of a queue": _share,
    "an overused queue": _overused,
    "a draining queue": _draining,
    "a closed queue": _closed,
    "a cycle of queues": _cycle,
    "a missing parent queue": _no_parent,
    "a queue with children": _inner_queue,
    "the quota of a tenant": _tenant_quota,
    "the quota of a member": _member_quota,
    "the quota of a namespace": _namespace_quota,
    "close nodes": _racks,
    "no topology plugin": _no_topology_plugin,
    "an unknown tier": _unknown_tier,
    "nobody to preempt": _lower_priority,
    "nobody to reclaim from": _nobody_to_reclaim,
    "a job that evicts nobody": _polite,
    "a queue above its share": _above_its_share,
})  # fmt: skip
