"""How many pods of ours may give way together, by the budgets of disruptions that are in a cluster."""

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


class World:
    """Pods of one job in one namespace, and what the server says of them and of budgets."""

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

    def kept(self, *keys: PodKey) -> set[int]:
        world: Any = self
        found = KubernetesBudgets(world, world, world, "c1").protected(keys, heartbeat=lambda: None)
        return {key.index for key in found}


def _error_of(chain: Any) -> ApiError | None:
    try:
        chain.send(None)
    except StopIteration:
        return None
    except ApiError as error:
        return error
    raise AssertionError("it waits for something")


@pytest.fixture
def world() -> World:
    return World()


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
def test_a_budget_counts_the_pods_that_it_selects(world: World, selector: Json | None, counts: bool) -> None:
    world.budget(1, selector)
    assert world.kept(world.pod(0), world.pod(1)) == ({1} if counts else set())


def test_the_smallest_of_several_budgets_counts(world: World) -> None:
    world.budget(3, ALL)
    world.budget(2, OF_JOB)
    assert world.kept(*map(world.pod, range(4))) == {2, 3}


def test_what_the_server_forbids_leaves_its_room_to_another(world: World) -> None:
    world.budget(1, ALL)
    world.forbidden = {"worker-0-"}
    assert world.kept(world.pod(0), world.pod(1)) == {0}


def test_pods_on_their_way_out_count_and_those_that_are_not_at_work_do_not(world: World) -> None:
    world.budget(1, ALL)
    world.pod(7, PodPhase.SUCCEEDED, is_stopping=True)
    world.pod(8, PodPhase.PREPARING)
    assert world.kept(world.pod(0)) == set()
    world.pod(9, is_stopping=True)
    assert world.kept(world.pod(0), world.pod(1, PodPhase.PREPARING)) == {0}


def test_one_that_goes_alone_may_go_as_the_server_says(world: World) -> None:
    """It knows of pods that are not well, which budgets may let go."""
    world.budget(0, ALL)
    assert world.kept(world.pod(0), world.pod(1)) == {1}


def test_where_budgets_cannot_be_listed_each_is_asked_for_as_if_it_went_alone(world: World) -> None:
    world.trouble = LIST_FAILS
    assert world.kept(world.pod(0), world.pod(1)) == set()


def test_a_server_that_is_asked_too_much_at_once_is_no_budget_that_refuses() -> None:
    assert is_protected(
        ApiError(429, "TooManyRequests", "Cannot evict pod as it would violate the pod's disruption budget.")
    )
    assert not is_protected(ApiError(429, "", "The API server answers with 429"))
