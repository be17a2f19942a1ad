"""Clusters as Kubernetes objects, for tests of constraints on one pending pod."""

from typing import Any

from hekla.engine import registry, scenario
from hekla.engine.node_fit import NodeFit
from hekla.engine.scheduler_cache import SchedulerCache
from hekla.engine.session import Session

Object = dict[str, Any]


def node(name: str, zone: str = "", cpu: str = "8", **more: Any) -> Object:
    """`more`: labels, taints, and any other field of the node's spec."""
    labels = {"kubernetes.io/hostname": name} | ({"zone": zone} if zone else {}) | more.pop("labels", {})
    room = {"cpu": cpu, "memory": "16Gi", "pods": "10"}
    return {"metadata": {"name": name, "labels": labels}, "spec": more, "status": {"allocatable": room}}


def pod(name: str, on: str = "", labels: Object | None = None, namespace: str = "ns", **spec: Any) -> Object:
    """A pod with a request of 1 CPU. With `on` it runs on that node."""
    metadata = {"name": name, "namespace": namespace, "labels": labels or {}}
    metadata["annotations"] = {"scheduling.k8s.io/group-name": "waits"} if not on else {}
    container = {"name": "c", "resources": {"requests": {"cpu": "1"}}, "ports": spec.pop("ports", [])}
    spec = {"containers": [container], "nodeName": on} | spec
    return {"metadata": metadata, "spec": spec, "status": {"phase": "Running" if on else "Pending"}}


def document(nodes: list[Object], pods: list[Object], *, plugins: list[Object], **cluster: Any) -> Object:
    """A scenario in which the pods without a node are pending, as one gang with a minimum of 1."""
    group = {"metadata": {"name": "waits", "namespace": "ns"}, "spec": {"minMember": 1, "queue": "q"}}
    group["status"] = {"phase": "Inqueue"}
    queues = [{"metadata": {"name": "q"}, "spec": {"weight": 1}}]
    cluster |= {"nodes": nodes, "pods": pods, "podGroups": [group], "queues": queues}
    return {"cluster": cluster, "actions": ["allocate"], "conf": {"tiers": [{"plugins": [{"name": "gang"}, *plugins]}]}}


def node_fit(document: Object) -> tuple[Session, NodeFit]:
    """An open session, and the node fit of the pending pod."""
    read = scenario.read(document)
    session = Session(SchedulerCache.of(read.state), read.policy, 0.0)
    for option in read.policy.tiers[0]:
        registry.plugins()[option.name].open_session(session, option)
    (job,) = session.jobs.values()
    return session, session.node_fit(job.pods[0])
