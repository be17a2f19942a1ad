"""NodeVolumeLimits: a CSI driver attaches a limited number of volumes to a node, as its CSINode reports."""

from collections import Counter
from collections.abc import Callable, Iterator

import numpy as np

from hekla.engine.columns import Mask, Rows
from hekla.engine.job_info import PodInfo
from hekla.engine.node_fit import Refusal
from hekla.engine.session import Session
from hekla.engine.storage import Attachment
from hekla.engine.topology_counts import is_counted


class AttachLimits:
    """The limits of nodes in one session."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._volumes = (
            {volume.name: volume for volume in session.storage.volumes} if session.storage.attach_limits else {}
        )

    def predicate(self, _session: Session, pod: PodInfo) -> Callable[[Rows], Iterator[Refusal]] | None:
        """Refuse nodes that cannot attach the volumes of the pod beside those of the pods there."""
        wanted = frozenset(self._attachments(pod)) if self._session.storage.attach_limits else frozenset()
        if not wanted:
            return None

        def refuse(rows: Rows) -> Iterator[Refusal]:
            all_rows = np.arange(len(self._session.table))[rows]
            full: Mask = np.array([self._is_full(int(row), wanted) for row in all_rows], dtype=bool)
            yield Refusal(full, "too many volumes", is_unresolvable=False)

        return refuse

    def _is_full(self, row: int, wanted: frozenset[Attachment]) -> bool:
        session = self._session
        name = session.table.nodes[row].name
        limits = session.storage.attach_limits.get(name)
        if not limits:
            return False
        there = set(session.storage.attached.get(name, ()))
        for pod in session.node_pods[row].values():
            if is_counted(pod):
                there.update(self._attachments(pod))
        held = Counter(driver for driver, _volume in there)
        new = Counter(driver for driver, _volume in wanted - there)
        return any(held[driver] + count > limits.get(driver, held[driver] + count) for driver, count in new.items())

    def _attachments(self, pod: PodInfo) -> Iterator[Attachment]:
        """The volumes of its claims, those too that will be provisioned."""
        storage = self._session.storage
        for name in pod.spec.constraints.volume_claims:
            claim = storage.claims.get(name)
            if claim is None:
                continue
            if volume := self._volumes.get(claim.volume):
                if volume.driver:
                    yield volume.driver, volume.handle
            elif not claim.volume and claim.storage_class in storage.classes:
                yield storage.classes[claim.storage_class].provisioner, name
