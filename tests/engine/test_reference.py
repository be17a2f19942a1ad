"""The engine decides as the reference engine, which was written separately from the same rules."""

import pytest
from hypothesis import given, settings
from tests.engine import reference
from tests.engine.clusters import FULL, WITH_BEST_EFFORT, clusters
from tests.support.examples import examples

from hekla.engine import cycle
from hekla.engine.decisions import Decisions
from hekla.engine.model import ClusterState
from hekla.engine.policy import SchedulerPolicy, parse


def policy(actions: str, *tiers: str) -> SchedulerPolicy:
    """Parse tiers of plugin names. An option follows a colon, as in `drf:enablePreemptable=false`."""
    lines = [f'actions: "{actions}"', "compatibility: volcano", "tiers:"]
    for tier in tiers:
        lines.append("- plugins:")
        for word in tier.split():
            name, _, option = word.partition(":")
            lines.append(f"  - name: {name}")
            if option:
                key, value = option.split("=")
                is_switch = key.startswith("enable")
                lines += [f"    {key}: {value}"] if is_switch else ["    arguments:", f"      {key}: {value}"]
    return parse("\n".join(lines))


def comparable(decisions: Decisions) -> dict[str, object]:
    """The decisions in a form that compares between both engines."""
    return {
        "binds": {bind.pod: bind.node for bind in decisions.binds},
        "evicted": {one.pod: (one.node, one.action, one.for_job) for one in decisions.evictions},
        "promised": dict(decisions.pipelined),
        "nominated": dict(decisions.nominated),
        "phases": {uid: str(phase) for uid, phase in decisions.phases.items()},
    }


def assert_equal_decisions(state: ClusterState, scheduler_policy: SchedulerPolicy) -> None:
    decisions = cycle(state, scheduler_policy, 0.0)
    assert not decisions.faults
    assert comparable(decisions) == comparable(reference.decide(state, scheduler_policy))


PLACING = {
    "default": policy(
        "enqueue, allocate", "priority gang conformance", "overcommit drf predicates proportion nodeorder binpack"
    ),
    "packing": policy("allocate", "priority gang", "predicates binpack:binpack.cpu=3"),
    "spreading": policy("enqueue, allocate", "gang", "predicates nodeorder:mostrequested.weight=2 proportion"),
    "drf": policy("allocate", "gang priority", "drf predicates nodeorder"),
    "no gangs": policy("enqueue, allocate", "priority drf", "overcommit:overcommit-factor=1.0 predicates proportion"),
    "no room in a tier": policy("enqueue, allocate", "gang", "overcommit", "proportion nodeorder"),
}
EVICTING = {
    "preempt": policy("enqueue, allocate, preempt", "priority gang conformance", "drf predicates proportion nodeorder"),
    "preempt without drf": policy(
        "allocate, preempt", "priority gang", "drf:enablePreemptable=false predicates binpack"
    ),
    "within jobs": policy("preempt", "priority", "gang predicates"),
    "reclaim": policy("enqueue, allocate, reclaim", "priority gang conformance", "drf predicates proportion nodeorder"),
    "reclaim by share": policy(
        "allocate, reclaim", "priority", "proportion predicates drf gang:enableReclaimable=false"
    ),
    "both": policy(
        "enqueue, allocate, preempt, reclaim, backfill",
        "priority gang:enableJobStarving=false",
        "proportion predicates binpack",
    ),
}


@pytest.mark.parametrize("name", PLACING)
@given(state=clusters())
@settings(max_examples=examples(150), deadline=None, derandomize=True)
def test_placements_equal_the_reference(name: str, state: ClusterState) -> None:
    assert_equal_decisions(state, PLACING[name])


@given(state=clusters(WITH_BEST_EFFORT))
@settings(max_examples=examples(150), deadline=None, derandomize=True)
def test_backfill_equals_the_reference(state: ClusterState) -> None:
    assert_equal_decisions(
        state, policy("enqueue, allocate, backfill", "priority gang", "drf predicates proportion binpack")
    )


@pytest.mark.parametrize("name", EVICTING)
@given(state=clusters(FULL))
@settings(max_examples=examples(150), deadline=None, derandomize=True)
def test_victims_equal_the_reference(name: str, state: ClusterState) -> None:
    assert_equal_decisions(state, EVICTING[name])
