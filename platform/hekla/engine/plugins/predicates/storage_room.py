"""Where CSI drivers have room for new volumes, as VolumeBinding checks it (CSIStorageCapacity).

A report is not reduced by volumes that are being provisioned: the driver reports again.
"""

from collections import defaultdict
from functools import cache

import numpy as np

from hekla.engine.columns import Mask, Vector
from hekla.engine.constraints import Requirement
from hekla.engine.session import Session
from hekla.engine.storage import PersistentVolumeClaim

_NONE = -1.0


class StorageRoom:
    """The room of all storage classes in one session."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._largest = cache(self._read)

    def fits(self, claim: PersistentVolumeClaim) -> Mask:
        """The rows where the driver of the claim's class can make the volume; all rows if nothing is reported."""
        if self._session.storage.classes[claim.storage_class].room is None:
            return np.ones(len(self._session.table), dtype=bool)
        enough: Mask = self._largest(claim.storage_class) >= claim.size
        return enough

    def _read(self, storage_class: str) -> Vector:
        """Per row the largest volume that the class can get there.

        Most drivers report each node or zone by one label, so these are looked up by its value.
        """
        index = self._session.node_index
        largest: Vector = np.full(len(self._session.table), _NONE)
        by_label: defaultdict[str, dict[str, float]] = defaultdict(dict)
        for one in self._session.storage.classes[storage_class].room or ():
            match one.node_selector:
                case None:
                    pass
                case (Requirement(key, "In", (value,)),):
                    by_label[key][value] = max(one.largest, by_label[key].get(value, _NONE))
                case requirements:
                    rows: Mask = np.ones(len(largest), dtype=bool)
                    for requirement in requirements:
                        rows = rows & index.matching(requirement)
                    largest[rows] = np.maximum(largest[rows], one.largest)
        for key, sizes in by_label.items():
            domain = index.domain(key)
            per_value = np.array([*(sizes.get(value, _NONE) for value in domain.values), _NONE])
            largest = np.maximum(largest, per_value[domain.codes])
        return largest
