"""What one may rely on where nodes are lent for some hours, tasks are moved off them, and jobs wait only so long."""

from dataclasses import replace

import pytest
from tests.engine import worlds

from hekla.domain.phases import GangPhase
from hekla.domain.resources import Resources
from hekla.engine import cycle
from hekla.engine.decisions import Decisions
from hekla.engine.model import ClusterState, NodeSpec, PodGroupSpec, PodStatus
from hekla.engine.plugins.tdm import is_open
from hekla.engine.policy import SchedulerPolicy, parse

HOUR = 3600.0
DAY = 24 * HOUR
ZONE = "volcano.sh/revocable-zone"
REVOCABLE = {"annotations": {ZONE: "*"}}
LENDING = """\
actions: "allocate, preempt, shuffle"
tiers:
- plugins:
  - {name: priority, enableJobStarving: false, enablePreemptable: false}
  - {name: gang, enableJobStarving: false, enablePreemptable: false}
  - name: tdm
    arguments:
      tdm.revocable-zone.night: "22:00-06:00"
      tdm.revocable-zone.day: "08:00-18:00"
      tdm.evict.period: 2m
- plugins:
  - name: predicates
"""


def policy(compatibility: str = "hekla") -> SchedulerPolicy:
    return replace(parse(LENDING), compatibility=compatibility)


def at(
    hour: float, nodes: list[NodeSpec], jobs: list[PodGroupSpec], compatibility: str = "hekla", **more: object
) -> Decisions:
    state: ClusterState = replace(worlds.state(nodes, jobs), **more)
    return cycle(state, policy(compatibility), 20_000 * DAY + hour * HOUR)


def lent(name: str, zone: str = "night") -> NodeSpec:
    return worlds.node(name, labels={ZONE: zone})


def revocable(name: str, pods: int = 1, **more: object) -> PodGroupSpec:
    return worlds.job(name, pods, task=REVOCABLE, **more)


def on_loan(name: str, pods: int, on: str, budget: dict[str, str] | None = None) -> PodGroupSpec:
    """Revocable tasks that run."""
    task = REVOCABLE | {"status": PodStatus.RUNNING, "node": on}
    return worlds.job(name, pods, minimum=1, phase=GangPhase.RUNNING, task=task, annotations=budget or {})


@pytest.mark.parametrize(
    ("window", "hour", "ours", "volcanos"),
    [
        ("08:00-18:00", 7.99, False, False),
        ("08:00-18:00", 8, True, True),
        ("08:00-18:00", 18, False, False),
        ("22:00-06:00", 23, True, True),
        ("22:00-06:00", 3, True, False),
        ("22:00-06:00", 6, False, False),
        ("00:00-00:00", 12, True, True),
        ("8:30-9:00", 8.75, True, True),
        ("25:00-26:00", 1, False, False),
        ("10:00-10:75", 10, False, False),
        ("always", 10, False, False),
    ],
)
def test_a_window_is_open_overnight_too_and_only_volcanos_is_not(
    window: str, hour: float, ours: bool, volcanos: bool
) -> None:
    now = 20_000 * DAY + hour * HOUR
    assert is_open(window, now, follows_volcano=False) is ours
    assert is_open(window, now, follows_volcano=True) is volcanos


def test_only_revocable_tasks_go_to_lent_nodes_and_only_while_they_are_lent() -> None:
    jobs = [revocable("r"), worlds.job("plain")]
    assert worlds.bound(at(3, [lent("a")], jobs)) == {"r": 1}
    assert worlds.bound(at(12, [lent("a")], jobs)) == {}
    assert worlds.bound(at(12, [lent("a", "unheard-of")], jobs)) == {}


def test_revocable_tasks_rather_go_to_lent_nodes() -> None:
    decisions = at(3, [worlds.node("a"), lent("b")], [revocable("r")])
    assert [bind.node for bind in decisions.binds] == ["b"]


@pytest.mark.parametrize(
    ("budget", "leaving"),
    [
        ({}, 1),
        ({"volcano.sh/jdb-max-unavailable": "2"}, 2),
        ({"volcano.sh/jdb-max-unavailable": "40%"}, 2),
        ({"volcano.sh/jdb-min-available": "1"}, 3),
        ({"volcano.sh/jdb-min-available": "60%"}, 1),
        ({"volcano.sh/jdb-min-available": "5"}, 0),
        ({"volcano.sh/jdb-max-unavailable": "nonsense"}, 0),
    ],
)
def test_when_the_time_is_over_as_many_leave_as_the_job_bears(budget: dict[str, str], leaving: int) -> None:
    decisions = at(12, [lent("a")], [on_loan("r", 4, "a", budget)])
    assert {eviction.action for eviction in decisions.evictions} <= {"shuffle"}
    assert len(decisions.evictions) == leaving


def test_who_may_stay_stays() -> None:
    nodes = [lent("a"), lent("b", "day"), worlds.node("c")]
    jobs = [on_loan("late", 1, "a"), on_loan("in-time", 1, "b"), on_loan("at-home", 1, "c")]
    assert [eviction.job for eviction in at(12, nodes, jobs).evictions] == ["late"]


def test_nobody_leaves_again_before_a_period_is_over() -> None:
    world = [lent("a")], [on_loan("r", 4, "a")]
    now = 20_000 * DAY + 12 * HOUR
    assert not at(12, *world, last_shuffle_at=now - 60).evictions
    assert len(at(12, *world, last_shuffle_at=now - 121).evictions) == 1


def test_a_job_in_two_zones_has_one_budget_but_not_in_volcano() -> None:
    split = on_loan("r", 4, "a")
    tasks = tuple(replace(task, node="ab"[i % 2]) for i, task in enumerate(split.pods))
    world = [lent("a"), lent("b", "day")], [replace(split, pods=tasks)]
    assert len(at(7, *world).evictions) == 1
    assert len(at(7, *world, compatibility="volcano").evictions) == 2


def test_a_job_below_what_it_needs_loses_nobody_but_in_volcano() -> None:
    world = [lent("a")], [on_loan("r", 2, "a", {"volcano.sh/jdb-min-available": "3"})]
    assert not at(12, *world).evictions
    assert len(at(12, *world, compatibility="volcano").evictions) == 1


def test_tasks_of_ones_own_take_from_those_that_may_be_evicted_within_their_budget() -> None:
    other = worlds.running("other", 4, "a", minimum=1, annotations={"volcano.sh/jdb-min-available": "3"})
    mine = worlds.job("mine", 2, task={"preemptable": False})
    assert not at(12, [worlds.node("a")], [other, mine]).evictions
    one = replace(mine, pods=mine.pods[:1], min_available=1, min_task_member={})
    decisions = at(12, [worlds.node("a")], [other, one])
    assert [(eviction.job, eviction.action) for eviction in decisions.evictions] == [("other", "preempt")]


# Waiting times.

WAITING = """\
actions: "enqueue, allocate"
tiers:
- plugins:
  - {{name: sla{arguments}}}
  - {{name: gang, enableJobPipelined: false}}
- plugins:
  - name: overcommit
  - name: predicates
"""


def waiting(arguments: str = "") -> SchedulerPolicy:
    return parse(WAITING.format(arguments=arguments))


def patient(name: str, created_at: float, wait: str = "") -> PodGroupSpec:
    """A job that may wait for so long."""
    notes = {"sla-waiting-time": wait} if wait else {}
    return worlds.job(name, 1, created_at=created_at, phase=GangPhase.PENDING, annotations=notes)


@pytest.mark.parametrize(
    ("wait", "general", "phase"),
    [
        ("50s", "", GangPhase.INQUEUE),
        ("2m", "", GangPhase.PENDING),
        ("", "", GangPhase.PENDING),
        ("", ", arguments: {sla-waiting-time: 1m}", GangPhase.INQUEUE),
        ("1h30m", ", arguments: {sla-waiting-time: 1m}", GangPhase.PENDING),
        ("soon", "", GangPhase.PENDING),
        ("0s", "", GangPhase.PENDING),
    ],
)
def test_who_has_waited_long_enough_is_let_in(wait: str, general: str, phase: GangPhase) -> None:
    job = replace(patient("j", 0.0, wait), min_resources=Resources.parse({"cpu": "100"}))
    decisions = cycle(worlds.state([worlds.node("a")], [job]), waiting(general), 100.0)
    assert decisions.phases["j"] is phase


def test_whose_time_is_over_first_goes_first() -> None:
    jobs = [patient("a-none", 0.0), patient("b-late", 1.0, "1h"), patient("c-soon", 2.0, "10m")]
    decisions = cycle(worlds.state([worlds.node("a", "1")], jobs), waiting(), 100.0)
    assert worlds.bound(decisions) == {"c-soon": 1}
