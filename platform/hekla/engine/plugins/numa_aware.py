"""Places pods with a NUMA policy on nodes where the kubelet can meet it (`volcano-spec` §5.5).

This applies to pods whose annotation `volcano.sh/numa-topology-policy` is best-effort, restricted or single-numa-node
and that Kubernetes calls Guaranteed: they request CPU and memory, and the limits equal it. Their nodes must have the
same policy and the static cpu manager. As in the kubelet, each resource that NUMA cells have gives hints: the sets of
cells with enough of it. A hint is preferred if no smaller set could have enough, even with all cells free. One hint of
each resource is intersected with the others; the best result is a preferred one, then the narrowest. `restricted` needs
a preferred result, `single-numa-node` one of a single cell. Fewer cells score higher, up to 100 times the argument
`weight` (1). Pods that the session places reduce the free resources of their cells.
"""

from collections.abc import Callable
from functools import cache, lru_cache
from itertools import combinations

import numpy as np

from hekla.domain.scheduling_inputs import Input
from hekla.domain.translation import gettext_noop
from hekla.engine.columns import NodeTable, Rows, Vector
from hekla.engine.extension_points import ExtensionPoint
from hekla.engine.inputs import Lack, Need
from hekla.engine.job_info import PodInfo
from hekla.engine.model import NodeSpec, Numa
from hekla.engine.node_fit import Refusal
from hekla.engine.policy import PluginOption
from hekla.engine.session import Session

POLICY = "volcano.sh/numa-topology-policy"
_POLICIES = frozenset({"best-effort", "restricted", "single-numa-node"})
_SINGLE, _RESTRICTED = "single-numa-node", "restricted"
_TOLERANCE = 1e-6
_MAX_CELLS = 8
"""The kubelet supports no more: the number of sets of cells is a power of two."""

Cells = tuple[tuple[float, ...], ...]
"""One row per cell, over the resources that the pod requests."""
Set = frozenset[int]

NEEDS = (
    Need(Input.POD_ANNOTATIONS, Lack.NOTHING),
    Need(Input.POD_LIMITS, Lack.NOTHING),
    Need(Input.NUMA_CELLS, Lack.REFUSES_SOME, gettext_noop("Jobs with a NUMA policy do not start.")),
)


def open_session(session: Session, option: PluginOption) -> None:
    """Refuse and score nodes for pods with a policy."""
    weight = option.number("weight", 1.0)
    cells = _Cells(session)

    def refuse(pod: PodInfo, table: NodeTable) -> list[Refusal]:
        policy = _policy(pod)
        if not policy:
            return []
        other = np.array([not _offers(node.numa, policy) for node in table.nodes], dtype=bool)
        return [Refusal(other, "numa topology policy does not match")]

    def crowded(pod: PodInfo, _table: NodeTable) -> Callable[[Rows], list[Refusal]] | None:
        if _policy(pod) in ("", "best-effort"):
            return None

        def refusals(rows: Rows) -> list[Refusal]:
            return [Refusal(cells.widths(pod, rows) < 0, "numa topology cannot be kept", is_unresolvable=False)]

        return refusals

    def score(pod: PodInfo, table: NodeTable, rows: Rows) -> Vector:
        if not _policy(pod):
            return np.zeros(len(table.used[rows]))
        widths, counts = cells.widths(pod, rows), cells.counts[rows]
        narrow = np.divide(counts - widths, counts - 1, out=np.ones(len(widths)), where=counts > 1)
        return np.where(widths > 0, narrow * 100 * weight, 0.0)

    session.on_change.append(cells.update)
    session.register(ExtensionPoint.TASK_CLASS, option, _policy)
    session.register(ExtensionPoint.PREDICATE, option, refuse)
    session.register(ExtensionPoint.CHANGING_PREDICATE, option, crowded)
    session.register(ExtensionPoint.NODE_ORDER, option, score)


def _policy(pod: PodInfo) -> str:
    """The policy of a Guaranteed pod, or an empty text."""
    spec = pod.spec
    policy = spec.annotations.get(POLICY, "")
    is_guaranteed = all(0 < spec.request.amount(name) == spec.limits.amount(name) for name in ("cpu", "memory"))
    return policy if policy in _POLICIES and is_guaranteed else ""


def _offers(numa: Numa | None, policy: str) -> bool:
    return numa is not None and numa.topology_policy == policy and numa.cpu_policy == "static" and bool(numa.cells)


class _Cells:
    """The free resources in the cells of each node, and the allocations of this session."""

    def __init__(self, session: Session) -> None:
        self._nodes = session.table.nodes
        self._free = [_free(node) for node in self._nodes]
        self._allocated: dict[str, list[tuple[int, str, float]]] = {}
        self.counts = np.array([float(len(free)) for free in self._free])

    def widths(self, pod: PodInfo, rows: Rows) -> Vector:
        """How many cells the pod would use on each node; -1: its policy cannot be met; 0: no cells."""
        wanted_rows = np.arange(len(self._nodes))[rows]
        return np.array([self._width(pod, row) for row in wanted_rows.tolist()], dtype=float)

    def _width(self, pod: PodInfo, row: int) -> int:
        numa = self._nodes[row].numa
        if numa is None or not self._free[row]:
            return 0
        best = self._best(pod, row, numa)
        policy = _policy(pod)
        if best is None:
            return -1
        chosen, is_preferred = best
        if (policy == _RESTRICTED and not is_preferred) or (policy == _SINGLE and len(chosen) > 1):
            return -1
        return len(chosen)

    def _best(self, pod: PodInfo, row: int, numa: Numa) -> tuple[Set, bool] | None:
        known = [name for name in sorted(pod.spec.request) if any(name in cell.allocatable for cell in numa.cells)]
        free = tuple(tuple(cell.get(name, 0.0) for name in known) for cell in self._free[row])
        whole = tuple(tuple(cell.allocatable.amount(name) for name in known) for cell in numa.cells[:_MAX_CELLS])
        return _merged(free, whole, tuple(pod.spec.request[name] for name in known), _policy(pod) == _SINGLE)

    def update(self, pod: PodInfo, row: int, sign: int) -> None:
        """Allocate from the cells that the pod would use, or release its allocation."""
        uid, numa = pod.spec.uid, self._nodes[row].numa
        if sign < 0:
            for at, name, amount in self._allocated.pop(uid, ()):
                self._free[row][at][name] += amount
        elif _policy(pod) and numa is not None and self._free[row] and pod.spec.node == "":
            best = self._best(pod, row, numa)
            self._allocated[uid] = self._take(pod, row, best[0] if best else frozenset())

    def _take(self, pod: PodInfo, row: int, chosen: Set) -> list[tuple[int, str, float]]:
        cells = self._free[row]
        order = [*sorted(chosen), *(at for at in range(len(cells)) if at not in chosen)]
        allocated = []
        for name, wanted in pod.spec.request.items():
            for at in order:
                part = min(wanted, cells[at].get(name, 0.0))
                if part > 0:
                    cells[at][name] -= part
                    allocated.append((at, name, part))
                    wanted -= part  # noqa: PLW2901
        return allocated


def _free(node: NodeSpec) -> list[dict[str, float]]:
    return [dict(cell.free) for cell in node.numa.cells[:_MAX_CELLS]] if node.numa else []


@cache
def _sets(count: int) -> tuple[Set, ...]:
    """All sets of cells, the smallest first."""
    return tuple(frozenset(one) for size in range(1, count + 1) for one in combinations(range(count), size))


@lru_cache(maxsize=100_000)
def _merged(free: Cells, whole: Cells, request: tuple[float, ...], is_single: bool) -> tuple[Set, bool] | None:
    """The best set of cells and whether it is preferred. None: no cells have enough."""
    merged: set[tuple[Set, bool]] = {(frozenset(range(len(free))), True)}
    for at, wanted in enumerate(request):
        hints = _hints(free, whole, at, wanted)
        if is_single:
            hints = [(one, preferred) for one, preferred in hints if len(one) == 1]
        merged = {(a & b, x and y) for a, x in merged for b, y in hints if a & b}
    return min(merged, key=lambda one: (not one[1], len(one[0]), sorted(one[0])), default=None)


def _hints(free: Cells, whole: Cells, at: int, wanted: float) -> list[tuple[Set, bool]]:
    """The sets with enough of one resource; preferred: no smaller set could have enough if all were free."""
    sets = _sets(len(free))
    least = min((len(s) for s in sets if _amount(whole, s, at) >= wanted - _TOLERANCE), default=0)
    return [(s, len(s) == least) for s in sets if _amount(free, s, at) >= wanted - _TOLERANCE]


def _amount(cells: Cells, chosen: Set, at: int) -> float:
    return sum(cells[one][at] for one in chosen)
