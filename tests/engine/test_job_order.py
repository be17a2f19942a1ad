"""The order of the jobs of each queue, by the queue, under policies that do not know it."""

from dataclasses import replace
from typing import Any

import pytest
from tests.engine.builders import bound, decide, job, node, running, state

from hekla.domain.phases import GangPhase
from hekla.engine import queue_shares
from hekla.engine.cycle import open_session
from hekla.engine.model import PodGroupSpec, QueueSpec
from hekla.engine.policy import DEFAULT_POLICY_TEXT, parse

VOLCANO = "compatibility: volcano\nactions: 'enqueue, allocate'\ntiers: [{plugins: [{name: priority}, {name: gang}]}]"
SLA = "volcano.sh/sla-waiting-time"
JOBS = [
    job("early", created_at=1.0, annotations={SLA: "10h"}),
    job("urgent", created_at=2.0, priority=9),
    job("bound", created_at=3.0, annotations={SLA: "5m"}),
]


def queue(order: str, name: str = "q") -> QueueSpec:
    return QueueSpec(name, annotations={"hekla.io/job-order": order} if order else {})


def started(jobs: list[PodGroupSpec], order: str, cores: int = 1, policy: str = DEFAULT_POLICY_TEXT) -> list[str]:
    """The names of the jobs that start on so many cores."""
    decisions = decide([node("n", str(cores))], jobs, [queue(order)], parse(policy))
    assert not decisions.faults
    return sorted(name.partition("/")[0] for name in bound(decisions))


def of_people(*counts: tuple[str, int], **fields: Any) -> list[PodGroupSpec]:
    """So many jobs of one core of each person, written as tenant.person; the first persons' jobs are older."""
    names = [(person, number) for person, count in counts for number in range(count)]
    return [
        job(f"{person}-{number}", namespace=person[0], owner=person, created_at=float(at), **fields)
        for at, (person, number) in enumerate(names)
    ]


def starts_by_person(names: list[str]) -> dict[str, int]:
    people = [name.rpartition("-")[0] for name in names]
    return {person: people.count(person) for person in sorted(set(people))}


@pytest.mark.parametrize("policy", [DEFAULT_POLICY_TEXT, VOLCANO], ids=["default", "volcano"])
@pytest.mark.parametrize(
    ("order", "winner"), [("fifo", "early"), ("priority", "urgent"), ("sla", "bound"), ("", "urgent"), ("x", "urgent")]
)
def test_queue_orders_its_jobs(policy: str, order: str, winner: str) -> None:
    assert started(JOBS, order, policy=policy) == [winner]


def test_orders_of_two_queues_are_independent() -> None:
    jobs = [replace(one, queue=name, uid=f"{name}-{one.uid}") for one in JOBS for name in ("q", "r")]
    jobs = [replace(one, pods=tuple(replace(pod, uid=f"{one.queue}-{pod.uid}") for pod in one.pods)) for one in jobs]
    nodes = [node("n", "2")]
    decisions = decide(nodes, jobs, [queue("fifo"), queue("sla", "r")], parse(DEFAULT_POLICY_TEXT))
    assert sorted(bind.pod for bind in decisions.binds) == ["q-early/0", "r-bound/0"]


@pytest.mark.parametrize("policy", [DEFAULT_POLICY_TEXT, VOLCANO], ids=["default", "volcano"])
def test_fair_order_alternates_between_tenants_and_their_people(policy: str) -> None:
    jobs = of_people(("a.greedy", 8), ("a.modest", 8), ("b.other", 8))
    assert starts_by_person(started(jobs, "", 8, policy)) == {"a.greedy": 8}
    assert starts_by_person(started(jobs, "fair", 8, policy)) == {"a.greedy": 2, "a.modest": 2, "b.other": 4}


def test_running_pods_count_for_their_owner() -> None:
    old = replace(running("old", 2, "n"), namespace="a", owner="a.greedy")
    jobs = [old, *of_people(("a.greedy", 4), ("a.modest", 4))]
    assert starts_by_person(started(jobs, "fair", 6)) == {"a.greedy": 1, "a.modest": 3}


def test_ones_own_priorities_decide_among_ones_jobs() -> None:
    jobs = [*of_people(("a.x", 2), ("a.y", 2)), job("best", namespace="a", owner="a.x", created_at=9.0, priority=5)]
    assert started(jobs, "fair", 2) == ["a.y-0", "best"]


def test_admission_is_fair() -> None:
    """The capability admits four jobs; without fairness all would be of the first person."""
    jobs = of_people(("a.x", 6), ("a.y", 6), phase=GangPhase.PENDING)
    fair = replace(queue("fair"), capability=node("n", "4").allocatable)
    decisions = decide([node("n", "9")], jobs, [fair], parse(DEFAULT_POLICY_TEXT))
    admitted = [uid for uid, phase in decisions.phases.items() if phase is not GangPhase.PENDING]
    assert starts_by_person(admitted) == {"a.x": 2, "a.y": 2}


def test_many_equal_jobs_without_room_are_examined_once_per_person() -> None:
    jobs = of_people(("a.x", 50), ("a.y", 50))
    decisions = decide([node("n", "0")], jobs, [queue("fair")], parse(DEFAULT_POLICY_TEXT))
    assert len(decisions.reasons) == 100


def test_waiting_jobs_are_listed_in_the_order_in_which_they_would_start() -> None:
    jobs = of_people(("a.x", 3), ("a.y", 2), ("b.z", 1))
    session = open_session(state([node("n")], jobs, [queue("fair")]), parse(DEFAULT_POLICY_TEXT), 0.0)
    listed = queue_shares.queue_shares(session)["q"].waiting_jobs
    assert listed == ("a.x-0", "b.z-0", "a.y-0", "a.x-1", "a.y-1", "a.x-2")
