"""What pages tell of queues is what the plugins count, and the line is the order in which jobs get their turns."""

from dataclasses import replace

import pytest
from tests.engine.test_capacity import TREE, cpu, policy
from tests.engine.worlds import decide, job, node, running

from hekla.domain.phases import GangPhase
from hekla.engine import cycle, queue_shares
from hekla.engine.model import ClusterState, PodGroupSpec, QueueSpec
from hekla.engine.policy import DEFAULT_POLICY_TEXT, SchedulerPolicy, parse
from hekla.engine.queue_shares import QueueShares

DEFAULT = parse(DEFAULT_POLICY_TEXT)
FLAT = policy()
UNDIVIDED = parse('actions: "allocate"\ntiers:\n- plugins:\n  - name: priority\n  - name: gang\n')


def look(
    jobs: list[PodGroupSpec], queues: list[QueueSpec], said: SchedulerPolicy, cpus: str = "8"
) -> dict[str, QueueShares]:
    found: dict[str, QueueShares] = {}
    state = ClusterState((node("a", cpus),), tuple(queues), tuple(jobs))
    cycle(
        state, replace(said, actions=()), 0.0, on_open=lambda session: found.update(queue_shares.queue_shares(session))
    )
    return found


def figures(one: QueueShares) -> dict[str, float]:
    parts = ("allocated", "deserved", "borrowed", "lent", "guarantee", "limit")
    return {part: getattr(one, part).amount("cpu") / 1000 for part in parts}


def test_under_capacity_one_borrows_what_another_leaves() -> None:
    queues = [QueueSpec("busy", deserved=cpu(2)), QueueSpec("idle", deserved=cpu(6), guarantee=cpu(1))]
    found = look([running("r", 5, "a", queue="busy")], queues, FLAT)
    assert figures(found["busy"]) == {
        "allocated": 5, "deserved": 2, "borrowed": 3, "lent": 0, "guarantee": 0, "limit": 7,
    }  # fmt: skip
    assert figures(found["idle"]) == {
        "allocated": 0, "deserved": 6, "borrowed": 0, "lent": 3, "guarantee": 1, "limit": 8,
    }  # fmt: skip
    assert (found["busy"].share, found["busy"].plugin) == (2.5, "capacity")


def test_under_proportion_weights_divide_what_is_asked_for() -> None:
    queues = [QueueSpec("one", weight=1), QueueSpec("three", weight=3), QueueSpec("none")]
    jobs = [job("a", 8, queue="one"), job("b", 8, queue="three")]
    found = look(jobs, queues, DEFAULT)
    assert [figures(found[name])["deserved"] for name in ("one", "three", "none")] == [2, 6, 0]
    assert found["three"].pending.amount("cpu") == 8000


def test_what_is_pending_counts_jobs_that_were_not_let_in_by_their_least() -> None:
    jobs = [job("a", 3, queue="q"), replace(job("b", 2, queue="q"), phase=GangPhase.PENDING, pods=())]
    assert look(jobs, [QueueSpec("q")], DEFAULT)["q"].pending.amount("cpu") == 5000


def test_what_a_child_borrows_its_parent_does_not_lend() -> None:
    queues = [QueueSpec("up", deserved=cpu(8)), QueueSpec("x", parent="up", deserved=cpu(4)),
              QueueSpec("y", parent="up", deserved=cpu(4))]  # fmt: skip
    found = look([running("r", 6, "a", queue="x")], queues, TREE)
    assert figures(found["up"])["allocated"] == 6
    assert figures(found["up"])["lent"] == 0
    assert figures(found["y"])["lent"] == 2
    assert found["x"].ancestors == ("up", "root")


def test_without_a_plugin_that_divides_nobody_borrows() -> None:
    found = look([running("r", 3, "a", queue="q")], [QueueSpec("q"), QueueSpec("other")], UNDIVIDED)
    assert (found["q"].plugin, figures(found["q"])["allocated"], figures(found["q"])["borrowed"]) == ("", 3, 0)
    assert figures(found["other"])["allocated"] == 0


@pytest.mark.parametrize("said", [DEFAULT, FLAT, policy(compatibility="volcano")], ids=["ours", "capacity", "volcano"])
def test_the_line_is_the_order_in_which_jobs_get_places(said: SchedulerPolicy) -> None:
    jobs = [
        job("late", created_at=3.0), job("first", created_at=1.0), job("urgent", priority=5, created_at=9.0),
        job("second", created_at=2.0),
    ]  # fmt: skip
    line = look(jobs, [QueueSpec("q")], said)["q"].waiting_jobs
    decided = decide([node("a", "2")], jobs, [QueueSpec("q")], said)
    assert line == ("urgent", "first", "second", "late")
    assert [bind.job for bind in decided.binds] == list(line[:2])


def test_who_has_its_places_is_not_in_line() -> None:
    found = look([running("r", 1, "a", queue="q"), job("w", queue="q")], [QueueSpec("q")], DEFAULT)
    assert found["q"].waiting_jobs == ("w",)
