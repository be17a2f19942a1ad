"""The PodDisruptionBudgets of the namespaces with pods that Hekla places, followed once the policy reads them.

They are reported for the labels that the engine knows: those of external pods, those of tasks, which pods carry only in
the own namespace of their tenant, and Hekla's own.
"""

import logging
import time
from collections.abc import Callable, Collection, Iterator, Sequence

from hekla.backends.base import BackendError
from hekla.backends.kubernetes import names
from hekla.backends.kubernetes.api import FORBIDDEN, NOT_FOUND, Api, ApiError, Json
from hekla.backends.kubernetes.layout import NamespaceLayout, Scopes
from hekla.backends.kubernetes.object_store import ObjectStore, StoredObject
from hekla.domain.cluster_objects import MAX_OBJECTS, ObjectFacts, ObjectKind, external_scope
from hekla.engine.pod_objects import label_selector

log = logging.getLogger(__name__)
_POLICY, _RESOURCE = "/apis/policy/v1", "poddisruptionbudgets"
_ABSENCE_VALID_SECONDS = 60.0
_MEETS_NO_LABEL = ("NotIn", "DoesNotExist")
"""The operators that a pod without the label meets."""


class BudgetStore:
    """The budgets of one cluster. `external`: the namespaces of external pods."""

    def __init__(
        self, api: Api, layout: NamespaceLayout, wake: Callable[[], None], external: Collection[str] = ()
    ) -> None:
        self._layout = layout
        self._external = {name: external_scope(name) for name in external}
        own = _RESOURCE if layout.per_tenant else f"namespaces/{layout.base}/{_RESOURCE}"
        others = () if layout.per_tenant else (f"namespaces/{name}/{_RESOURCE}" for name in external)
        self._stores = [ObjectStore(api, f"{_POLICY}/{place}", wake) for place in (own, *others)]
        self._absent_until = [float("-inf") for _ in self._stores]
        self._listed: tuple[object, Sequence[ObjectFacts]] = (None, ())

    def list_budgets(self, tenants: Collection[str]) -> Sequence[ObjectFacts]:
        """From the watches, without namespaces that cannot be read; the very same object as before if none changed."""
        stores = [store for at, store in enumerate(self._stores) if self._is_followed(at, store)]
        scopes = self._layout.scopes(tenants) | self._external
        basis = [(store, store.changes) for store in stores], scopes
        if basis != self._listed[0]:
            here = (one for store in stores for one in store.all())
            self._listed = basis, tuple(self._read_all([one for one in here if one.name[0] in scopes], scopes))
        return self._listed[1]

    @property
    def fault(self) -> str:
        """The unexpected error that last ended a watch, if that was recently."""
        return next((store.fault for store in self._stores if store.fault), "")

    def close(self) -> None:
        """End the watches. The owner closes the connections."""
        for store in self._stores:
            store.close()

    def _is_followed(self, at: int, store: ObjectStore) -> bool:
        """Whether its budgets are known, after an attempt to follow them."""
        if time.monotonic() < self._absent_until[at]:
            return False
        try:
            store.follow()
        except BackendError as error:
            log.info("disruption budgets cannot be listed: %s", error)
            if isinstance(error, ApiError) and error.status in (NOT_FOUND, FORBIDDEN):
                self._absent_until[at] = time.monotonic() + _ABSENCE_VALID_SECONDS
            return False
        return True

    def _read_all(self, found: Sequence[StoredObject], scopes: Scopes) -> Iterator[ObjectFacts]:
        if len(found) > MAX_OBJECTS:
            log.warning("the cluster has %d disruption budgets; %d count", len(found), MAX_OBJECTS)
        for one in found[:MAX_OBJECTS]:
            if facts := self._facts(one, scopes[one.name[0]]):
                yield facts

    def _facts(self, stored: StoredObject, scope: str) -> ObjectFacts | None:
        """What is reported of a budget; None if it covers no pod of ours, or is not valid."""
        (namespace, name), _version, body = stored
        try:
            selector = body["spec"].get("selector")
            if selector is not None and scope == "":
                selector = _of_own_labels(selector)
            if label_selector(selector) is None:
                return None
            reported = {
                "metadata": {"namespace": scope, "name": name},
                "spec": {"selector": selector},
                "status": {"disruptionsAllowed": int((body.get("status") or {}).get("disruptionsAllowed") or 0)},
            }
            return ObjectFacts.of(ObjectKind.DISRUPTION_BUDGET, f"{namespace}/{name}", reported)
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            log.warning("the disruption budget %s/%s is left out: %s", namespace, name, error)
            return None


def _of_own_labels(selector: Json) -> Json | None:
    """The selector for pods that carry only Hekla's labels; None if it selects none of them."""
    labels = selector.get("matchLabels") or {}
    wanted = selector.get("matchExpressions") or ()
    missing = [one["operator"] for one in wanted if not names.is_own_label(one["key"])]
    if not all(map(names.is_own_label, labels)) or not set(missing) <= set(_MEETS_NO_LABEL):
        return None
    return {"matchLabels": labels, "matchExpressions": [one for one in wanted if names.is_own_label(one["key"])]}
