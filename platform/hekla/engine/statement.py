"""Volcano's Statement: tentative placements and evictions, committed or discarded together (`volcano-spec` §3.4)."""

from hekla.engine import eviction_shares
from hekla.engine.decisions import Eviction
from hekla.engine.job_info import PodInfo
from hekla.engine.model import PodStatus
from hekla.engine.session import Session

Operation = tuple[PodInfo, Eviction | None, str, PodStatus]


class Statement:
    """The operations so far. `len()` is a mark for `save` and `discard`."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._operations: list[tuple[PodInfo, Eviction | None]] = []

    def __len__(self) -> int:
        return len(self._operations)

    def place(self, pod: PodInfo, row: int, *, now: bool) -> None:
        """Allocate a pod on a row, or pipeline it if not `now`."""
        self._session.place(pod, row, PodStatus.ALLOCATED if now else PodStatus.PIPELINED)
        self._operations.append((pod, None))

    def evict(self, pod: PodInfo, action: str, for_job: str, plugins: tuple[str, ...] = ()) -> None:
        """Evict a pod; `plugins`: those that allowed it."""
        eviction = Eviction(pod.job.group.uid, pod.spec.uid, pod.node, action, for_job, plugins)
        self._session.evict(pod)
        self._operations.append((pod, eviction))

    def commit(self) -> None:
        """Bind allocated pods and record evictions. Pipelined pods stay so for this session only."""
        evicts = False
        for pod, eviction in self._operations:
            evicts = evicts or eviction is not None
            if eviction is None and pod.status is PodStatus.ALLOCATED:
                self._session.bind(pod)
        if evicts:
            self._session.evictions += eviction_shares.with_shares(self._session, self._operations)

    def save(self, mark: int = 0) -> list[Operation]:
        """The operations since the mark, for `recover`."""
        return [(pod, eviction, pod.node, pod.status) for pod, eviction in self._operations[mark:]]

    def recover(self, steps: list[Operation]) -> None:
        """Repeat saved operations."""
        for pod, eviction, node, status in steps:
            if eviction is None:
                self.place(pod, self._session.table.row_of[node], now=status is PodStatus.ALLOCATED)
            else:
                self.evict(pod, eviction.action, eviction.for_job, eviction.plugins)

    def discard(self, mark: int = 0) -> None:
        """Undo everything since the mark, the last first."""
        while len(self._operations) > mark:
            pod, eviction = self._operations.pop()
            if eviction is None:
                self._session.unplace(pod)
            else:
                self._session.unevict(pod)
