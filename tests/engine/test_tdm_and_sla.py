"""The plugins `tdm` (nodes that are revocable in time windows) and `sla` (maximum waiting times)."""

from dataclasses import replace

import pytest
from tests.engine import builders

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


def decide_at(
    hour: float, nodes: list[NodeSpec], jobs: list[PodGroupSpec], compatibility: str = "hekla", **more: object
) -> Decisions:
    state: ClusterState = replace(builders.state(nodes, jobs), **more)
    return cycle(state, policy(compatibility), 20_000 * DAY + hour * HOUR)


def lent_node(name: str, zone: str = "night") -> NodeSpec:
    return builders.node(name, labels={ZONE: zone})


def revocable(name: str, pods: int = 1, **more: object) -> PodGroupSpec:
    return builders.job(name, pods, task=REVOCABLE, **more)


def running_revocable(name: str, pods: int, on: str, budget: dict[str, str] | None = None) -> PodGroupSpec:
    """A job of running revocable pods."""
    task = REVOCABLE | {"status": PodStatus.RUNNING, "node": on}
    return builders.job(name, pods, minimum=1, phase=GangPhase.RUNNING, task=task, annotations=budget or {})


def test_job_that_waits_for_a_window_can_start() -> None:
    reasons = decide_at(12, [lent_node("a")], [revocable("lent"), builders.job("own")]).reasons
    assert {name: found[0].ever for name, found in reasons.items()} == {"lent": True, "own": False}


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
def test_window_over_midnight_except_in_volcano(window: str, hour: float, ours: bool, volcanos: bool) -> None:
    now = 20_000 * DAY + hour * HOUR
    assert is_open(window, now, follows_volcano=False) is ours
    assert is_open(window, now, follows_volcano=True) is volcanos


def test_only_revocable_pods_use_lent_nodes_in_an_open_window() -> None:
    jobs = [revocable("r"), builders.job("plain")]
    assert builders.bound(decide_at(3, [lent_node("a")], jobs)) == {"r": 1}
    assert builders.bound(decide_at(12, [lent_node("a")], jobs)) == {}
    assert builders.bound(decide_at(12, [lent_node("a", "unheard-of")], jobs)) == {}


def test_revocable_pods_prefer_lent_nodes() -> None:
    decisions = decide_at(3, [builders.node("a"), lent_node("b")], [revocable("r")])
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
def test_closed_window_evicts_within_the_disruption_budget(budget: dict[str, str], leaving: int) -> None:
    decisions = decide_at(12, [lent_node("a")], [running_revocable("r", 4, "a", budget)])
    assert {eviction.action for eviction in decisions.evictions} <= {"shuffle"}
    assert len(decisions.evictions) == leaving


def test_only_pods_on_nodes_with_a_closed_window_are_evicted() -> None:
    nodes = [lent_node("a"), lent_node("b", "day"), builders.node("c")]
    jobs = [
        running_revocable("late", 1, "a"),
        running_revocable("in-time", 1, "b"),
        running_revocable("at-home", 1, "c"),
    ]
    assert [eviction.job for eviction in decide_at(12, nodes, jobs).evictions] == ["late"]


def test_evictions_wait_for_the_evict_period() -> None:
    cluster = [lent_node("a")], [running_revocable("r", 4, "a")]
    now = 20_000 * DAY + 12 * HOUR
    assert not decide_at(12, *cluster, last_shuffle_at=now - 60).evictions
    assert len(decide_at(12, *cluster, last_shuffle_at=now - 121).evictions) == 1


def test_job_in_two_zones_has_one_budget_except_in_volcano() -> None:
    split = running_revocable("r", 4, "a")
    tasks = tuple(replace(task, node="ab"[i % 2]) for i, task in enumerate(split.pods))
    cluster = [lent_node("a"), lent_node("b", "day")], [replace(split, pods=tasks)]
    assert len(decide_at(7, *cluster).evictions) == 1
    assert len(decide_at(7, *cluster, compatibility="volcano").evictions) == 2


def test_job_below_min_available_loses_no_pod_except_in_volcano() -> None:
    cluster = [lent_node("a")], [running_revocable("r", 2, "a", {"volcano.sh/jdb-min-available": "3"})]
    assert not decide_at(12, *cluster).evictions
    assert len(decide_at(12, *cluster, compatibility="volcano").evictions) == 1


def test_non_preemptable_pods_preempt_preemptable_ones_within_budget() -> None:
    other = builders.running("other", 4, "a", minimum=1, annotations={"volcano.sh/jdb-min-available": "3"})
    mine = builders.job("mine", 2, task={"preemptable": False})
    assert not decide_at(12, [builders.node("a")], [other, mine]).evictions
    one = replace(mine, pods=mine.pods[:1], min_available=1, min_task_member={})
    decisions = decide_at(12, [builders.node("a")], [other, one])
    assert [(eviction.job, eviction.action) for eviction in decisions.evictions] == [("other", "preempt")]


# SLA waiting times.

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


def sla_policy(arguments: str = "") -> SchedulerPolicy:
    return parse(WAITING.format(arguments=arguments))


def job_with_waiting_time(name: str, created_at: float, wait: str = "") -> PodGroupSpec:
    """A pending job with this SLA waiting time."""
    notes = {"sla-waiting-time": wait} if wait else {}
    return builders.job(name, 1, created_at=created_at, phase=GangPhase.PENDING, annotations=notes)


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
def test_job_is_admitted_after_its_sla_waiting_time(wait: str, general: str, phase: GangPhase) -> None:
    job = replace(job_with_waiting_time("j", 0.0, wait), min_resources=Resources.parse({"cpu": "100"}))
    decisions = cycle(builders.state([builders.node("a")], [job]), sla_policy(general), 100.0)
    assert decisions.phases["j"] is phase


def test_earliest_sla_deadline_is_first() -> None:
    jobs = [
        job_with_waiting_time("a-none", 0.0),
        job_with_waiting_time("b-late", 1.0, "1h"),
        job_with_waiting_time("c-soon", 2.0, "10m"),
    ]
    decisions = cycle(builders.state([builders.node("a", "1")], jobs), sla_policy(), 100.0)
    assert builders.bound(decisions) == {"c-soon": 1}
