"""Filters by the node alone: unschedulable, node affinity, taints."""

from collections.abc import Iterator

from hekla.engine.job_info import PodInfo
from hekla.engine.node_fit import Refusal
from hekla.engine.node_index import UNSCHEDULABLE, is_tolerated
from hekla.engine.session import Session


def unschedulable(session: Session, pod: PodInfo) -> Iterator[Refusal]:
    """NodeUnschedulable: refuse nodes that are not ready, and cordoned ones unless the pod tolerates their taint."""
    nodes = session.node_index
    is_exempt = is_tolerated(UNSCHEDULABLE, pod.spec.tolerations)
    refused = nodes.not_ready if is_exempt else nodes.unschedulable | nodes.not_ready
    yield Refusal(refused, "not schedulable", is_lasting=False)


def node_affinity(session: Session, pod: PodInfo) -> Iterator[Refusal]:
    """NodeAffinity: refuse nodes that do not match the node selector and the required node affinity."""
    if pod.spec.node_selector or pod.spec.constraints.required_node_terms is not None:
        yield Refusal(~session.node_index.matching_affinity(pod.spec), "label does not match")


def taints(session: Session, pod: PodInfo) -> Iterator[Refusal]:
    """TaintToleration: refuse nodes with an untolerated NoSchedule or NoExecute taint."""
    for taint, rows in session.node_index.untolerated(pod.spec.tolerations).items():
        yield Refusal(rows, f"taint {taint.key}", is_lasting=not taint.is_of_condition)
