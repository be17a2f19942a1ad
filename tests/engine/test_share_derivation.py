"""The derivation of a share ends with what the engine decides, and its rounds lead there."""

from random import Random

import pytest
from tests.engine.builders import job, node, running
from tests.engine.test_capacity import TREE, cpu
from tests.engine.test_queue_shares import DEFAULT, FLAT, UNDIVIDED

from hekla.engine import queue_shares
from hekla.engine.cycle import open_session
from hekla.engine.model import ClusterState, PodGroupSpec, QueueSpec
from hekla.engine.policy import SchedulerPolicy
from hekla.engine.share_derivation import ShareDerivation, derive


def derived(
    jobs: list[PodGroupSpec], queues: list[QueueSpec], policy: SchedulerPolicy, cpus: str = "8"
) -> ShareDerivation:
    """The derivation; its results must be those of the engine's shares in the same state."""
    state = ClusterState((node("a", cpus),), tuple(queues), tuple(jobs))
    session = open_session(state, policy, 0.0)
    found, shares = derive(session), queue_shares.queue_shares(session, waiting_in="")
    assert {name: one.deserved for name, one in found.queues.items()} == {
        name: one.deserved for name, one in shares.items()
    }
    return found


def test_rounds_divide_what_is_left_by_weight() -> None:
    queues = [QueueSpec("one", weight=1), QueueSpec("three", weight=3), QueueSpec("none")]
    found = derived([job("a", 8, queue="one"), job("b", 3, queue="three")], queues, DEFAULT)
    assert found.plugin == "proportion"
    assert found.total.amount("cpu") == 8000
    first, second = found.rounds[:2]
    assert (first.left.amount("cpu"), first.weights) == (8000, 4)
    assert {name: amount.amount("cpu") for name, amount in first.offered.items()} == {"one": 2000, "three": 6000}
    assert first.deserved["three"].amount("cpu") == 3000  # its jobs request no more
    assert (second.left.amount("cpu"), list(second.offered)) == (3000, ["one"])
    assert second.offered["one"].amount("cpu") == found.queues["one"].deserved.amount("cpu") == 5000
    assert not found.queues["none"].has_jobs


@pytest.mark.parametrize("seed", range(5))
def test_the_last_round_of_each_queue_gives_its_result(seed: int) -> None:
    random = Random(seed)
    names = [f"q{number}" for number in range(6)]
    queues = [
        QueueSpec(
            name,
            weight=random.randint(1, 5),
            guarantee=cpu(random.choice([0, 0, 2])),
            capability=random.choice([None, cpu(4)]),
        )
        for name in names
    ]
    jobs = [job(f"j{number}", random.randint(1, 9), queue=random.choice(names)) for number in range(5)]
    found = derived(jobs, queues, DEFAULT, cpus="20")
    results = {name: amounts for one in found.rounds for name, amounts in one.deserved.items()}
    assert results == {name: one.deserved for name, one in found.queues.items() if one.has_jobs}


def test_capacity_has_settings_and_no_rounds() -> None:
    queues = [QueueSpec("busy", deserved=cpu(2)), QueueSpec("idle", deserved=cpu(6), guarantee=cpu(1))]
    found = derived([running("r", 5, "a", queue="busy")], queues, FLAT)
    assert (found.plugin, found.rounds) == ("capacity", ())
    assert found.queues["busy"].setting.amount("cpu") == found.queues["busy"].deserved.amount("cpu") == 2000
    assert found.queues["busy"].limit.amount("cpu") == 7000  # one CPU is guaranteed to the other
    assert found.guaranteed.amount("cpu") == 1000


def test_a_tree_names_the_parents() -> None:
    queues = [QueueSpec("root"), QueueSpec("lab", parent="root"), QueueSpec("team", parent="lab", deserved=cpu(3))]
    found = derived([], queues, TREE)
    assert found.queues["team"].ancestors == ("lab", "root")


def test_no_plugin_divides() -> None:
    assert derived([job("a", 3, queue="q")], [QueueSpec("q")], UNDIVIDED).plugin == ""
