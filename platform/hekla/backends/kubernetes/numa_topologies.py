"""Volcano's Numatopology objects: the NUMA cells of nodes and their free CPUs, kept up to date by a watch.

Volcano's resource exporter writes one for each node. As in Volcano, CPUs that the node reserves are no part of a cell.
"""

import logging
import math
import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from hekla.backends.base import BackendError
from hekla.backends.kubernetes.api import FORBIDDEN, NOT_FOUND, Api, ApiError, Json
from hekla.backends.kubernetes.reflector import Reflector
from hekla.domain.cpu_sets import MAX_CPUS, parse_cpus
from hekla.domain.numa import MAX_CELLS, NumaTopology
from hekla.domain.resources import Resources

log = logging.getLogger(__name__)
GROUP = "nodeinfo.volcano.sh"
_PATH = f"/apis/{GROUP}/v1alpha1/numatopologies"
_ABSENCE_VALID_SECONDS = 60.0
_POLICIES = frozenset({"none", "best-effort", "restricted", "single-numa-node", "static"})


class NamedTopology(NamedTuple):
    """What is known of the node with this name; None: its object is not valid."""

    name: str
    topology: NumaTopology | None


class NumaTopologies:
    """The NUMA cells of the nodes of one cluster. Implements `ReflectorStore`."""

    def __init__(self, api: Api) -> None:
        self._lock = threading.Condition()
        self._known: dict[str, NumaTopology] = {}
        self._absent_until = float("-inf")
        self._reflector = Reflector(api, _PATH, {}, self, self._lock)

    def of_nodes(self) -> Mapping[str, NumaTopology]:
        """By the names of nodes; none in a cluster without such objects, or without the right to read them."""
        if not self._reflector.has_listed and not self._list():
            return {}
        self._reflector.start()
        with self._lock:
            return dict(self._known)

    def _list(self) -> bool:
        """Whether they could be listed."""
        if time.monotonic() < self._absent_until:
            return False
        try:
            self._reflector.relist()
        except BackendError as error:
            log.info("Numatopology objects cannot be listed: %s", error)
            if isinstance(error, ApiError) and error.status in (NOT_FOUND, FORBIDDEN):
                self._absent_until = time.monotonic() + _ABSENCE_VALID_SECONDS
            return False
        return True

    @property
    def fault(self) -> str:
        """The unexpected error that last ended the watch, if that was recently."""
        return self._reflector.fault

    def close(self) -> None:
        """End the watch. The owner closes the connections."""
        self._reflector.close()

    def read(self, found: Json) -> NamedTopology:
        """What an object says."""
        name = str(found["metadata"]["name"])
        try:
            return NamedTopology(name, parse_topology(found["spec"]))
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            log.info("the Numatopology of %s is not valid: %s", name, error)
            return NamedTopology(name, None)

    def known(self) -> Sequence[NamedTopology]:
        """Nothing: a list replaces everything."""
        return ()

    def replace(
        self,
        found: Sequence[NamedTopology],
        before: Sequence[NamedTopology],  # noqa: ARG002
        *,
        was_restored: bool,  # noqa: ARG002
    ) -> None:
        """Replace everything by a list."""
        self._known = {one.name: one.topology for one in found if one.topology is not None}

    def apply(self, kind: str, found: NamedTopology) -> None:
        """Update one node from an event of the watch."""
        if kind == "DELETED" or found.topology is None:
            self._known.pop(found.name, None)
        else:
            self._known[found.name] = found.topology


def parse_topology(spec: Json) -> NumaTopology:
    """The cells in a Numatopology. Raises ValueError, and others if the object has not the demanded form."""
    policies, details = spec.get("policies") or {}, spec.get("cpuDetail") or {}
    if len(details) > MAX_CPUS:
        raise ValueError("it has too many CPUs")
    cell_of = {int(cpu): int(detail.get("numa") or 0) for cpu, detail in details.items()}
    reserved = set(_reserved(details, (spec.get("resReserved") or {}).get("cpu")))
    free = parse_cpus((((spec.get("numares") or {}).get("cpu")) or {}).get("allocatable") or "")
    pinnable = cell_of.keys() - reserved
    counts = Counter(cell_of[cpu] for cpu in pinnable)
    left = Counter(cell_of[cpu] for cpu in pinnable & free)
    cells = sorted(set(cell_of.values()))[:MAX_CELLS]
    return NumaTopology(
        _policy(policies.get("TopologyManagerPolicy")),
        _policy(policies.get("CPUManagerPolicy")),
        tuple((counts[cell], left[cell]) for cell in cells),
    )


def _policy(text: object) -> str:
    """A policy of a kubelet; one that nobody knows is none."""
    return text if isinstance(text, str) and text in _POLICIES else "none"


def _reserved(details: Mapping[str, Json], amount: str | None) -> list[int]:
    """The CPUs that the node reserves for itself: the first ones, with all threads of a core."""
    count = math.ceil(Resources.parse({"cpu": amount or 0}).amount("cpu") / 1000)  # of thousandths
    places = ((int(one.get("socket") or 0), int(one.get("core") or 0), int(cpu)) for cpu, one in details.items())
    return [cpu for _socket, _core, cpu in sorted(places)][:count]
