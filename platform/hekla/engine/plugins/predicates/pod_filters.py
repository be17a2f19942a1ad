"""Filters by the pods on a node: their number, and their host ports."""

from collections.abc import Callable, Iterator

from hekla.engine.columns import EPSILON, Rows
from hekla.engine.constraints import HostPort
from hekla.engine.job_info import PodInfo
from hekla.engine.model import PodStatus
from hekla.engine.node_fit import Refusal
from hekla.engine.node_index import Counts
from hekla.engine.session import Session


def pod_count(session: Session, pod: PodInfo) -> Callable[[Rows], Iterator[Refusal]] | None:
    """Refuse nodes that are full by number of pods.

    Only needed for pods without requests, which are placed without a check for room. For others the dimension `pods`
    does the same; only Volcano also counts releasing pods against pipelined ones, and so evicts more than it needs.
    """
    if not pod.best_effort and not (session.policy.follows_volcano and _some_leave(session)):
        return None
    table, pods = session.table, session.dimensions.names.index("pods")

    def refuse(rows: Rows) -> Iterator[Refusal]:
        full = table.allocatable[rows, pods] < table.expected[rows, pods] + EPSILON
        yield Refusal(full, "too many pods", is_unresolvable=False)

    return refuse


def _some_leave(session: Session) -> bool:
    leaving = session.topology_counts.count("leaving", lambda pod: int(pod.spec.status is PodStatus.RELEASING))
    return bool(leaving.any())


def host_ports(session: Session, pod: PodInfo) -> Callable[[Rows], Iterator[Refusal]] | None:
    """NodePorts: refuse nodes where another pod uses a host port of the pod."""
    users_by_port = [_users(session, port) for port in pod.spec.constraints.host_ports]
    if not users_by_port:
        return None

    def refuse(rows: Rows) -> Iterator[Refusal]:
        for users in users_by_port:
            yield Refusal(users[rows] > 0, "port in use", is_unresolvable=False)

    return refuse


def _users(session: Session, port: HostPort) -> Counts:
    def uses(pod: PodInfo) -> int:
        return int(any(port.conflicts_with(other) for other in pod.spec.constraints.host_ports))

    return session.topology_counts.count(("port", port), uses)
