"""Disruption budgets of a cluster: how many of our pods may be evicted together."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from hekla.backends.base import Observation, PodKey
from hekla.backends.kubernetes import names
from hekla.backends.kubernetes.api import ApiError, Json
from hekla.backends.kubernetes.budgets import KubernetesBudgets, is_protected
from hekla.backends.kubernetes.pod_state import PodState
from hekla.domain.phases import PodPhase
from hekla.lib.clock import now

LIST_FAILS = ApiError(403, "Forbidden", "cannot list poddisruptionbudgets")


class BudgetServer:
    """The pods of one job in one namespace, and the server's responses about them and about budgets."""

    def __init__(self) -> None:
        self.pods: dict[PodKey, PodState] = {}
        self.budgets: list[Json] = []
        self.forbidden: set[str] = set()
        self.trouble: ApiError | None = None

    def pod(self, index: int, phase: PodPhase = PodPhase.RUNNING, *, is_stopping: bool = False) -> PodKey:
        key = PodKey("job", "worker", index, 0)
        observation = Observation(key, phase, now())
        self.pods[key] = PodState(("hekla", key.name), f"u{index}", 1, "n", "", observation, is_stopping=is_stopping)
        return key

    def budget(self, allowed: int, selector: Json | None) -> None:
        spec = {} if selector is None else {"selector": selector}
        self.budgets.append({"metadata": {"name": "b"}, "spec": spec, "status": {"disruptionsAllowed": allowed}})

    def all(self) -> Sequence[PodState]:
        return list(self.pods.values())

    def find(self, key: PodKey) -> PodState | None:
        return self.pods.get(key)

    def run_each(self, work: Callable[[Any], Any], items: Sequence[Any], _heartbeat: object) -> Iterator[Any]:
        for item in items:
            yield item, _error_of(work(item))

    async def create(self, path: str, _body: Json) -> None:
        if any(name in path for name in self.forbidden):
            raise ApiError(429, "TooManyRequests", "Cannot evict pod")

    async def get(self, _path: str) -> Json:
        if self.trouble:
            raise self.trouble
        return {"items": self.budgets}

    def protected(self, *keys: PodKey) -> set[int]:
        server: Any = self
        found = KubernetesBudgets(server, server, server, "c1", server).protected(keys, heartbeat=lambda: None)
        return {key.index for key in found}


def _error_of(chain: Any) -> ApiError | None:
    try:
        chain.send(None)
    except StopIteration:
        return None
    except ApiError as error:
        return error
    raise AssertionError("the coroutine did not finish at once")


@pytest.fixture
def server() -> BudgetServer:
    return BudgetServer()


ALL: Json = {}
OF_JOB: Json = {"matchLabels": {names.JOB: "job"}}
SELECTORS: list[tuple[Json | None, bool]] = [
    (None, False),
    (ALL, True),
    (OF_JOB, True),
    ({"matchLabels": {names.JOB: "another"}}, False),
    ({"matchExpressions": [{"key": names.TASK, "operator": "In", "values": ["worker", "ps"]}]}, True),
    ({"matchExpressions": [{"key": names.TASK, "operator": "NotIn", "values": ["worker"]}]}, False),
    ({"matchExpressions": [{"key": names.CLUSTER, "operator": "Exists"}]}, True),
    ({"matchExpressions": [{"key": "app", "operator": "DoesNotExist"}]}, True),
    ({**OF_JOB, "matchExpressions": [{"key": "app", "operator": "Exists"}]}, False),
]


@pytest.mark.parametrize(("selector", "counts"), SELECTORS)
def test_budget_counts_the_pods_that_it_selects(server: BudgetServer, selector: Json | None, counts: bool) -> None:
    server.budget(1, selector)
    assert server.protected(server.pod(0), server.pod(1)) == ({1} if counts else set())


def test_smallest_of_several_budgets_counts(server: BudgetServer) -> None:
    server.budget(3, ALL)
    server.budget(2, OF_JOB)
    assert server.protected(*map(server.pod, range(4))) == {2, 3}


def test_room_of_a_forbidden_pod_goes_to_another(server: BudgetServer) -> None:
    server.budget(1, ALL)
    server.forbidden = {"worker-0-"}
    assert server.protected(server.pod(0), server.pod(1)) == {0}


def test_stopping_pods_count_and_pods_that_do_not_run_do_not(server: BudgetServer) -> None:
    server.budget(1, ALL)
    server.pod(7, PodPhase.SUCCEEDED, is_stopping=True)
    server.pod(8, PodPhase.PREPARING)
    assert server.protected(server.pod(0)) == set()
    server.pod(9, is_stopping=True)
    assert server.protected(server.pod(0), server.pod(1, PodPhase.PREPARING)) == {0}


def test_dry_run_decides_for_a_single_pod(server: BudgetServer) -> None:
    """The server knows about unhealthy pods, which some budgets allow to evict."""
    server.budget(0, ALL)
    assert server.protected(server.pod(0), server.pod(1)) == {1}


def test_dry_run_decides_for_each_pod_if_budgets_cannot_be_listed(server: BudgetServer) -> None:
    server.trouble = LIST_FAILS
    assert server.protected(server.pod(0), server.pod(1)) == set()


def test_429_of_an_overloaded_server_is_no_budget() -> None:
    assert is_protected(
        ApiError(429, "TooManyRequests", "Cannot evict pod as it would violate the pod's disruption budget.")
    )
    assert not is_protected(ApiError(429, "", "The API server answers with 429"))
