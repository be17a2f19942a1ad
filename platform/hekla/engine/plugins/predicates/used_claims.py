"""Claims that pods on nodes use, counted in a session from the first pod with claims that is considered."""

from abc import ABC, abstractmethod
from collections.abc import Collection

from hekla.engine.job_info import PodInfo
from hekla.engine.session import Session


class UsedClaims(ABC):
    """The claims of one kind. A subclass decides which of them a pod has, and what a further or an ended use means."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._is_loaded = False

    @abstractmethod
    def _claims_of(self, pod: PodInfo) -> Collection[str]:
        """The names of the claims of this kind that the pod has."""

    @abstractmethod
    def _count(self, pod: PodInfo, row: int, sign: int) -> None:
        """Count a pod on the node of this row once more (1), or once less (-1)."""

    def _load(self) -> None:
        self._is_loaded = True
        for row, residents in enumerate(self._session.node_pods):
            for pod in residents.values():
                if self._claims_of(pod):
                    self._count(pod, row, 1)

    def _update(self, pod: PodInfo, row: int, sign: int) -> None:
        """Count a change. Pods on nodes contain a new one already when they are loaded, and an evicted one still."""
        if not self._claims_of(pod):
            return
        is_counted = not self._is_loaded
        if is_counted:
            self._load()
        if not is_counted or (sign < 0 and pod.spec.uid in self._session.node_pods[row]):
            self._count(pod, row, sign)
