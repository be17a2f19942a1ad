"""Check whether disruption budgets allow our pods to be evicted, by dry runs of the Eviction API.

Our pods are ended by their deadline (see `pod_deletion`), which budgets do not notice until a pod has ended. The server
answers for each pod as if it were evicted alone. So this module counts how many may be evicted together, and together
with pods that are stopping. Budgets select by labels; only labels that Hekla sets are considered.
"""

import logging
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from hekla.backends.base import PodKey
from hekla.backends.kubernetes import names
from hekla.backends.kubernetes.api import ApiError, Json
from hekla.backends.kubernetes.async_client import AsyncClient
from hekla.backends.kubernetes.budget_store import BudgetStore
from hekla.backends.kubernetes.layout import PodLocator
from hekla.backends.kubernetes.pod_cache import PodCache
from hekla.backends.kubernetes.pod_state import PodState
from hekla.domain.cluster_objects import ObjectFacts
from hekla.domain.phases import PodPhase

log = logging.getLogger(__name__)
_TOO_MANY_REQUESTS, _REASON = 429, "TooManyRequests"
_BUDGETS = "/apis/policy/v1/namespaces/{}/poddisruptionbudgets"
_NO_ROOM = "Cannot evict pod as it would violate the pod's disruption budget {}, beside others that leave."
_MATCHES: Mapping[str, Callable[[str | None, Sequence[str]], bool]] = {
    "In": lambda value, values: value in values,
    "NotIn": lambda value, values: value not in values,
    "Exists": lambda value, _values: value is not None,
    "DoesNotExist": lambda value, _values: value is None,
}


def eviction(name: str, namespace: str, uid: str) -> Json:
    """An Eviction of the pod with this uid, and of no later pod of the same name."""
    return {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": name, "namespace": namespace},
        "deleteOptions": {"preconditions": {"uid": uid}},
    }


def is_protected(refusal: ApiError) -> bool:
    """Whether a budget caused the refusal. An overloaded server answers with the same status, without this reason."""
    return refusal.status == _TOO_MANY_REQUESTS and refusal.reason == _REASON


@dataclass(slots=True)
class _Budget:
    """A disruption budget. `allowed`: disruptions that the server allows. `counted`: disruptions counted here."""

    name: str
    selector: Json | None
    allowed: int
    counted: int = 0

    @property
    def is_used_up(self) -> bool:
        """Whether our count reaches the limit. With a count of 0 the server's own answer decides."""
        return 0 < self.counted >= self.allowed

    def covers(self, labels: Mapping[str, str]) -> bool:
        """Whether the budget covers pods with these labels. No selector covers no pods, an empty one all."""
        if self.selector is None:
            return False
        wanted = self.selector.get("matchLabels") or {}
        return all(labels.get(name) == value for name, value in wanted.items()) and all(
            _MATCHES[one["operator"]](labels.get(one["key"]), one.get("values") or ())
            for one in self.selector.get("matchExpressions") or ()
        )


class KubernetesBudgets:
    """Implements `base.DisruptionBudgets`."""

    def __init__(
        self, client: AsyncClient, cache: PodCache, locator: PodLocator, cluster: str, store: BudgetStore
    ) -> None:
        self._client, self._cache, self._locator, self._cluster = client, cache, locator, cluster
        self._store = store

    def list_budgets(self, tenants: Collection[str]) -> Sequence[ObjectFacts]:
        """From the watch, as the server counts them."""
        return self._store.list_budgets(tenants)

    def protected(self, keys: Sequence[PodKey], *, heartbeat: Callable[[], None]) -> Mapping[PodKey, str]:
        """By the server's present answer. If it does not answer, a pod is not protected."""
        found: dict[PodKey, str] = {}
        pods = [pod for key in keys if (pod := self._locator.find(key)) and _is_at_work(pod)]
        for pod, error in self._client.run_each(self._ask, pods, heartbeat):
            if isinstance(error, ApiError) and is_protected(error):
                found[pod.key] = str(error)
            elif error is not None:
                log.info("whether %s may go cannot be asked: %s", pod.name, error)
        return found | self._overdrawn([pod for pod in pods if pod.key not in found], heartbeat)

    async def _ask(self, pod: PodState) -> None:
        body = eviction(pod.name, pod.namespace, pod.uid)
        await self._client.create(f"{pod.path}/eviction?dryRun=All", body)

    def _overdrawn(self, going: Sequence[PodState], heartbeat: Callable[[], None]) -> dict[PodKey, str]:
        """The pods of `going` that exceed a budget together with the others. Each may be evicted alone."""
        budgets = self._listed({pod.namespace for pod in going}, heartbeat)
        if not budgets:
            return {}
        leaving = (pod for pod in self._cache.all() if pod.is_stopping and not pod.is_deleted)
        for pod in leaving:
            for budget in self._over(pod, budgets):
                budget.counted += 1
        return dict(self._counted(going, budgets))

    def _counted(self, going: Sequence[PodState], budgets: Mapping[str, Sequence[_Budget]]) -> list[tuple[PodKey, str]]:
        protected: list[tuple[PodKey, str]] = []
        for pod in going:
            over = self._over(pod, budgets)
            if full := [budget for budget in over if budget.is_used_up]:
                protected.append((pod.key, _NO_ROOM.format(full[0].name)))
                continue
            for budget in over:
                budget.counted += 1
        return protected

    def _over(self, pod: PodState, budgets: Mapping[str, Sequence[_Budget]]) -> list[_Budget]:
        """The budgets that cover this pod; none if it is not running."""
        if pod.observation.phase is not PodPhase.RUNNING:
            return []
        labels = names.labels(self._cluster, pod.key)
        return [budget for budget in budgets.get(pod.namespace, ()) if budget.covers(labels)]

    def _listed(self, namespaces: set[str], heartbeat: Callable[[], None]) -> Mapping[str, Sequence[_Budget]]:
        found: dict[str, list[_Budget]] = defaultdict(list)

        async def look(namespace: str) -> None:
            for one in (await self._client.get(_BUDGETS.format(namespace))).get("items") or ():
                allowed = int((one.get("status") or {}).get("disruptionsAllowed") or 0)
                found[namespace].append(_Budget(one["metadata"]["name"], one["spec"].get("selector"), allowed))

        for namespace, error in self._client.run_each(look, sorted(namespaces), heartbeat):
            if error is not None:
                log.info("the budgets of disruptions in %s cannot be seen: %s", namespace, error)
        return found


def _is_at_work(pod: PodState) -> bool:
    """Whether the pod is bound and neither stopping nor deleted."""
    return pod.is_bound and not (pod.is_stopping or pod.is_deleted)
