"""The engine answers as a slow and plain one does that was written from the same rules apart from it."""

import pytest
from hypothesis import given, settings
from tests.engine import reference
from tests.engine.clusters import FREE_RIDERS, FULL, clusters
from tests.support.examples import examples

from hekla.engine import cycle
from hekla.engine.decisions import Decisions
from hekla.engine.model import ClusterState
from hekla.engine.policy import SchedulerPolicy, parse


def policy(actions: str, *tiers: str) -> SchedulerPolicy:
    """Tiers of plugin names; an option is written behind a colon, as in `drf:enablePreemptable=false`."""
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


def told(decisions: Decisions) -> dict[str, object]:
    """What counts of the answer of either."""
    return {
        "binds": {bind.pod: bind.node for bind in decisions.binds},
        "evicted": {one.pod: (one.node, one.action, one.for_job) for one in decisions.evictions},
        "promised": dict(decisions.pipelined),
        "nominated": dict(decisions.nominated),
        "phases": {uid: str(phase) for uid, phase in decisions.phases.items()},
    }


def agree(state: ClusterState, asked: SchedulerPolicy) -> None:
    decisions = cycle(state, asked, 0.0)
    assert not decisions.faults
    assert told(decisions) == told(reference.decide(state, asked))


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
def test_places_are_the_same(name: str, state: ClusterState) -> None:
    agree(state, PLACING[name])


@given(state=clusters(FREE_RIDERS))
@settings(max_examples=examples(150), deadline=None, derandomize=True)
def test_tasks_that_ask_for_nothing_go_to_the_same_places(state: ClusterState) -> None:
    agree(state, policy("enqueue, allocate, backfill", "priority gang", "drf predicates proportion binpack"))


@pytest.mark.parametrize("name", EVICTING)
@given(state=clusters(FULL))
@settings(max_examples=examples(150), deadline=None, derandomize=True)
def test_victims_are_the_same(name: str, state: ClusterState) -> None:
    agree(state, EVICTING[name])
