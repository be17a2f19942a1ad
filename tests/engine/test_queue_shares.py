"""Queue shares equal what the plugins count, and waiting jobs are in the order of allocation."""

from dataclasses import replace

import pytest
from tests.engine.builders import decide, job, node, running
from tests.engine.test_capacity import TREE, cpu, policy

from hekla.domain.phases import GangPhase
from hekla.engine import cycle, queue_shares
from hekla.engine.model import ClusterState, PodGroupSpec, QueueSpec
from hekla.engine.policy import DEFAULT_POLICY_TEXT, SchedulerPolicy, parse
from hekla.engine.queue_shares import QueueShares
from hekla.engine.session import Session

DEFAULT = parse(DEFAULT_POLICY_TEXT)
FLAT = policy()
UNDIVIDED = parse('actions: "allocate"\ntiers:\n- plugins:\n  - name: priority\n  - name: gang\n')


def shares_of(
    jobs: list[PodGroupSpec], queues: list[QueueSpec], scheduler_policy: SchedulerPolicy, cpus: str = "8"
) -> dict[str, QueueShares]:
    """The shares of all queues; those of one queue alone are the same."""
    found: dict[str, QueueShares] = {}

    def read(session: Session) -> None:
        found.update(queue_shares.queue_shares(session))
        assert {name: queue_shares.shares_of(session, name) for name in found} == found
        assert queue_shares.shares_of(session, "unknown") is None

    state = ClusterState((node("a", cpus),), tuple(queues), tuple(jobs))
    cycle(state, replace(scheduler_policy, actions=()), 0.0, on_open=read)
    return found


def cpus_of(one: QueueShares) -> dict[str, float]:
    parts = ("allocated", "deserved", "borrowed", "lent", "guarantee", "limit")
    return {part: getattr(one, part).amount("cpu") / 1000 for part in parts}


def test_capacity_reports_borrowed_and_lent() -> None:
    queues = [QueueSpec("busy", deserved=cpu(2)), QueueSpec("idle", deserved=cpu(6), guarantee=cpu(1))]
    found = shares_of([running("r", 5, "a", queue="busy")], queues, FLAT)
    assert cpus_of(found["busy"]) == {
        "allocated": 5, "deserved": 2, "borrowed": 3, "lent": 0, "guarantee": 0, "limit": 7,
    }  # fmt: skip
    assert cpus_of(found["idle"]) == {
        "allocated": 0, "deserved": 6, "borrowed": 0, "lent": 3, "guarantee": 1, "limit": 8,
    }  # fmt: skip
    assert (found["busy"].share, found["busy"].plugin) == (2.5, "capacity")


def test_proportion_divides_requests_by_weight() -> None:
    queues = [QueueSpec("one", weight=1), QueueSpec("three", weight=3), QueueSpec("none")]
    jobs = [job("a", 8, queue="one"), job("b", 8, queue="three")]
    found = shares_of(jobs, queues, DEFAULT)
    assert [cpus_of(found[name])["deserved"] for name in ("one", "three", "none")] == [2, 6, 0]
    assert found["three"].pending.amount("cpu") == 8000


def test_pending_counts_the_minimum_of_jobs_not_admitted() -> None:
    jobs = [job("a", 3, queue="q"), replace(job("b", 2, queue="q"), phase=GangPhase.PENDING, pods=())]
    assert shares_of(jobs, [QueueSpec("q")], DEFAULT)["q"].pending.amount("cpu") == 5000


def test_parent_does_not_lend_what_a_child_borrows() -> None:
    queues = [QueueSpec("up", deserved=cpu(8)), QueueSpec("x", parent="up", deserved=cpu(4)),
              QueueSpec("y", parent="up", deserved=cpu(4))]  # fmt: skip
    found = shares_of([running("r", 6, "a", queue="x")], queues, TREE)
    assert cpus_of(found["up"])["allocated"] == 6
    assert cpus_of(found["up"])["lent"] == 0
    assert cpus_of(found["y"])["lent"] == 2
    assert found["x"].ancestors == ("up", "root")


def test_nothing_is_borrowed_without_a_share_plugin() -> None:
    found = shares_of([running("r", 3, "a", queue="q")], [QueueSpec("q"), QueueSpec("other")], UNDIVIDED)
    assert (found["q"].plugin, cpus_of(found["q"])["allocated"], cpus_of(found["q"])["borrowed"]) == ("", 3, 0)
    assert cpus_of(found["other"])["allocated"] == 0


@pytest.mark.parametrize(
    "scheduler_policy", [DEFAULT, FLAT, policy(compatibility="volcano")], ids=["ours", "capacity", "volcano"]
)
def test_waiting_jobs_are_in_allocation_order(scheduler_policy: SchedulerPolicy) -> None:
    jobs = [
        job("late", created_at=3.0), job("first", created_at=1.0), job("urgent", priority=5, created_at=9.0),
        job("second", created_at=2.0),
    ]  # fmt: skip
    waiting = shares_of(jobs, [QueueSpec("q")], scheduler_policy)["q"].waiting_jobs
    decided = decide([node("a", "2")], jobs, [QueueSpec("q")], scheduler_policy)
    assert waiting == ("urgent", "first", "second", "late")
    assert [bind.job for bind in decided.binds] == list(waiting[:2])


def test_running_job_is_not_among_the_waiting() -> None:
    found = shares_of([running("r", 1, "a", queue="q"), job("w", queue="q")], [QueueSpec("q")], DEFAULT)
    assert found["q"].waiting_jobs == ("w",)
