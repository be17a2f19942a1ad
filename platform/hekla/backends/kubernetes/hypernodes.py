"""The HyperNode objects of a cluster, listed together with its nodes (`hypernode_members` says what they mean)."""

import logging
import time

from hekla.backends.base import BackendError
from hekla.backends.kubernetes.api import FORBIDDEN, NOT_FOUND, Api, ApiError, Json
from hekla.backends.kubernetes.hypernode_members import (
    MAX_HYPERNODES,
    HyperNodeResolver,
    HyperNodeSpecs,
    Levels,
    NodeLabels,
    Topology,
    parse_objects,
)

log = logging.getLogger(__name__)
GROUP = "topology.volcano.sh"
_PATH = f"/apis/{GROUP}/v1alpha1/hypernodes"
_ABSENCE_VALID_SECONDS = 60.0


class HyperNodes:
    """Which hypernodes hold the nodes of one cluster."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._absent_until = float("-inf")
        self._objects, self._nodes = HyperNodeSpecs(), dict[str, dict[str, str]]()
        self._resolver, self._topology = HyperNodeResolver(), Topology({})

    def of_nodes(self, nodes: NodeLabels) -> Levels:
        """The hypernodes that hold each of these nodes; the very same object as before if nothing changed.

        None of them in a cluster without such objects, or without the right to list them. If the server does not
        list them for another reason, they count as unchanged.
        """
        objects = self._list()
        keys = objects.label_keys
        known = {name: {key: labels[key] for key in keys & labels.keys()} for name, labels in nodes.items()}
        if objects != self._objects or known != self._nodes:
            before, self._topology = self._topology.faults, self._resolver.resolve(objects, known)
            self._objects, self._nodes = objects, known
            if self._topology.faults != before:
                log.warning("HyperNode objects have problems: %s", ", ".join(map(str, self._topology.faults)) or "none")
        return self._topology.levels

    def _list(self) -> HyperNodeSpecs:
        if time.monotonic() < self._absent_until:
            return HyperNodeSpecs()
        try:
            return list_objects(self._api)
        except BackendError as error:
            log.info("HyperNode objects cannot be listed: %s", error)
            if not isinstance(error, ApiError) or error.status not in (NOT_FOUND, FORBIDDEN):
                return self._objects
            self._absent_until = time.monotonic() + _ABSENCE_VALID_SECONDS
            return HyperNodeSpecs()


def list_objects(api: Api) -> HyperNodeSpecs:
    """The HyperNode objects, with what is wrong with them. Raises BackendError."""
    found: list[Json] = []
    for page in api.pages(_PATH):
        found += page.get("items") or ()
        if len(found) > MAX_HYPERNODES:
            break
    return parse_objects(found)
