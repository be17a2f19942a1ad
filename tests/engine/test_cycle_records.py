"""A recorded cycle is read back as it was, and the engine decides the same again."""

import math
from collections.abc import Mapping
from dataclasses import replace
from random import Random
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.engine.builders import decide, job, node, running, state
from tests.engine.histories import History
from tests.engine.test_histories import POLICIES, WITH_EVICTIONS
from tests.support.examples import examples

from hekla.controller.cycle_recorder import MAX_ANSWER_BYTES, NotedAnswers
from hekla.domain.resources import Resources
from hekla.domain.taints import Taint
from hekla.engine import cycle
from hekla.engine.constraints import NodeSelectorTerm, PodAffinityTerm, PodConstraints, PodSelector, Requirement
from hekla.engine.cycle_trace import traced_cycle
from hekla.engine.decisions import Decisions
from hekla.engine.devices import Device, DeviceClaim, DeviceRequest, Devices
from hekla.engine.model import ClusterState, HyperNode, NodeUsage, QueueSpec, TenantQuota, Toleration
from hekla.engine.policy import DEFAULT_POLICY_TEXT, parse
from hekla.engine.storage import PersistentVolume, PersistentVolumeClaim, Storage
from hekla.scheduling import cycle_document
from hekla.scheduling.column_codec import InvalidRecord, decode, encode
from hekla.scheduling.cycle_document import BaseDocument, RecordedCycle, outcome_of, pack, read, unpack
from hekla.scheduling.cycle_replay import replay

TEXTS = {"default": WITH_EVICTIONS, "volcano": WITH_EVICTIONS + "compatibility: volcano\n"}


def recorded(
    cluster: ClusterState, decisions: Decisions, text: str = WITH_EVICTIONS, now: float = 0.0
) -> RecordedCycle:
    return RecordedCycle(cluster, text, now, outcome_of(cluster, decisions, tuple(decisions.reasons)))


@pytest.mark.parametrize("name", TEXTS)
@given(seed=st.integers(0, 2**32))
@settings(max_examples=examples(8), deadline=None)
def test_replayed_decisions_equal_the_recorded_ones(name: str, seed: int) -> None:
    base: BaseDocument | None = None
    for cluster, decisions in History(seed, POLICIES[name]).run_with_changes(10):
        found = recorded(cluster, decisions, TEXTS[name])
        read_again = read(unpack(pack(found, base)), base.state if base else None)
        assert read_again == found
        again = replay(read_again, traced=[one.uid for one in cluster.jobs])
        assert again.is_equal, again.differences
        base = base or BaseDocument(cluster)


def rich_state() -> ClusterState:
    affinity = PodAffinityTerm(PodSelector((Requirement("app", "In", ("a",)),), frozenset({"x", "y"})), "zone")
    term = NodeSelectorTerm((Requirement("gpu", "Exists"),))
    bound = PodConstraints(
        required_node_terms=(term,), pod_anti_affinity=(affinity,), preferred_node_terms=((3, term),)
    )
    nodes = [
        node("a", labels={"gpu": "yes"}, taints=(Taint("k", "v"),), usage=NodeUsage(1.5, 2.0, 3.0, (4.0, 5.0))),
        node("b", images={"x": 12.0}),
    ]
    jobs = [
        job("one", 3, task={"constraints": bound, "tolerations": (Toleration("k", "Exists"),)}),
        running("two", 1, "b", annotations={"q": "r"}),
    ]
    limits = Resources.parse_limits({"nvidia.com/gpu": 0})
    return replace(
        state(nodes, jobs, [QueueSpec("q", capability=limits)]),
        storage=Storage({"n/c": PersistentVolumeClaim(access_modes=frozenset({"x"}))}, (PersistentVolume("v"),)),
        devices=Devices(
            (Device("d", "p", "n", attributes={"a": {"b": True}}),),
            {
                "n/d": DeviceClaim(
                    (DeviceRequest("r", tolerations=({"key": ["x", None]},)),), allocated=(("d", "p", "n"),)
                )
            },
            {("d", "p", "n", "c"): 2.0},
        ),
        hyper_nodes=(HyperNode("h", 1, frozenset({"a", "b"})),),
        tenant_quotas=(TenantQuota("n", {"cpu": math.inf, "memory": 0.0}),),
    )


def test_every_kind_of_object_is_read_as_it_was() -> None:
    cluster = rich_state()
    found = recorded(cluster, cycle(cluster, parse(WITH_EVICTIONS), 7.5), now=7.5)
    again = read(orjson.loads(orjson.dumps(cycle_document.document(found))))
    assert again == found
    assert dict(again.state.queues[0].capability.amounts) == {"nvidia.com/gpu": 0.0}


def test_a_later_cycle_of_the_same_objects_is_small() -> None:
    jobs = [job(f"j{at}", 2) for at in range(400)]
    cluster = state([node(f"n{at}") for at in range(50)], jobs)
    base = BaseDocument(cluster)
    changed = replace(cluster, jobs=(*cluster.jobs[:200], replace(jobs[200], priority=9), *cluster.jobs[202:]))
    found = recorded(changed, Decisions())
    small, whole = pack(found, base), pack(found)
    assert read(unpack(small), cluster) == found
    assert len(small) * 4 < len(whole)


@pytest.mark.parametrize(
    "damage",
    [
        {"format": 99}, {"values": [["o", "Path", {}]]}, {"values": [["e", "PodSpec", 1]]}, {"jobs": {}},
        {"rest": {"shard": 10**6}}, {"outcome": None},
        {"nodes": {"new": {"count": 10**9, "same": {"name": "x"}, "each": {}}}},
        {"nodes": {"new": {"count": 10**6, "same": {"name": "x", "allocatable": 0}, "each": {}}}},
    ],
)  # fmt: skip
def test_damaged_documents_are_refused(damage: dict[str, object]) -> None:
    data = orjson.loads(orjson.dumps(cycle_document.document(recorded(rich_state(), Decisions()))))
    with pytest.raises(InvalidRecord):
        read(data | damage)


def test_pods_are_in_one_job_only_and_new_objects_are_all_there() -> None:
    cluster = rich_state()
    data = orjson.loads(orjson.dumps(cycle_document.document(recorded(cluster, Decisions()))))
    whole = sum(data["jobs"]["new"]["sizes"])
    with pytest.raises(InvalidRecord, match="incomplete"):
        read(data | {"jobs": {"new": data["jobs"]["new"] | {"sizes": [whole, -whole] * 1000 + [whole]}}})
    nodes = {"runs": [[-1, 10**9]], "new": data["nodes"]["new"]}
    again = read(data | {"is_whole": False, "nodes": nodes, "queues": {"runs": [], "new": data["queues"]["new"]},
                         "jobs": {"runs": [], "new": data["jobs"]["new"]}}, cluster)  # fmt: skip
    assert again.state.nodes == cluster.nodes


def test_too_many_answers_of_extenders_are_not_held() -> None:
    for answer in ("x" * (MAX_ANSWER_BYTES // 2), 2**80):
        noted = NotedAnswers(lambda *_call, answer=answer: answer)
        assert [noted("http://x", {}, 1.0) for _ in range(3)] == [answer] * 3
        assert noted.answers is None


def test_damaged_bytes_and_deep_values_are_refused() -> None:
    with pytest.raises(InvalidRecord):
        unpack(b"no record")
    deep: object = 1
    for _ in range(100):
        deep = ["t", deep]
    with pytest.raises(InvalidRecord):
        decode(deep)
    with pytest.raises(TypeError):
        encode(object())


def test_scores_of_plugins_add_up_and_vetoes_name_their_plugin() -> None:
    nodes = [node("small", "1"), node("tainted", "8", taints=(Taint("k"),)), node("good", "8"), node("used", "8")]
    jobs = [job("new", 1, cpu="2"), running("old", 3, "used")]
    policy = parse(DEFAULT_POLICY_TEXT)
    decisions, trace = traced_cycle(state(nodes, jobs), policy, 0.0, traced=["new"])
    assert decisions == cycle(state(nodes, jobs), policy, 0.0)
    (examined,) = trace.examinations["new"]
    found = {one.node: one for one in examined.nodes}
    assert [one.node for one in examined.nodes if one.is_chosen] == [decisions.binds[0].node]
    for name in ("good", "used"):
        assert found[name].total == pytest.approx(sum(found[name].scores.values()))
        assert {"binpack", "nodeorder"} <= found[name].scores.keys()
    assert found["used"].total > found["good"].total, "binpack prefers it"
    assert found["small"].short == ("cpu",)
    assert [name for name, _reason in found["tainted"].vetoes] == ["predicates"]
    assert examined.candidates == 2
    assert trace.steps["allocate", "new"] == {"tried": 1, "placed": 1}


def test_victims_and_who_spared_them() -> None:
    nodes = [node("n", "4")]
    jobs = [running("gang", 2, "n"), running("loose", 2, "n", minimum=0), job("urgent", 1, priority=9)]
    _decisions, trace = traced_cycle(state(nodes, jobs), parse(WITH_EVICTIONS), 0.0, traced=["urgent"])
    verdicts = {(one.job, one.is_allowed, one.spared_by) for one in trace.victims["urgent"]}
    assert ("gang", False, "gang") in verdicts
    assert {allowed for name, allowed, _by in verdicts if name == "loose"} == {True}


def test_extenders_are_not_called_again() -> None:
    verbs = "predicateVerb: filter, prioritizeVerb: score, jobReadyVerb: ready"
    plugin = f"{{name: extender, arguments: {{extender: {{urlPrefix: 'http://x', {verbs}}}}}}}"
    text = f"actions: allocate\ntiers:\n- plugins: [{{name: gang}}, {plugin}]\n- plugins: [{{name: predicates}}]\n"
    dice = Random(1)

    def call(address: str, document: Mapping[str, Any], _timeout: float) -> Any:
        if address.endswith("score"):
            return {"scores": {name: dice.random() for name in document["nodes"]}}
        if address.endswith("ready"):
            if "two" in str(document):
                raise TimeoutError("too slow")
            return {"ready": True}
        return {"refused": {"a": "no licence"}}

    cluster, noted = state([node(name) for name in "abcd"], [job("one", 2), job("two", 3)]), NotedAnswers(call)
    decisions = cycle(cluster, parse(text), 0.0, noted)
    outcome = outcome_of(cluster, decisions, tuple(decisions.reasons))
    assert noted.answers is not None
    found = read(unpack(pack(RecordedCycle(cluster, text, 0.0, outcome, tuple(noted.answers)))))
    again = replay(found, traced=["one", "two"])
    assert {is_answer for is_answer, _answer in noted.answers} == {True, False}
    assert again.is_equal, again.differences
    assert decisions.binds
    assert replay(replace(found, answers=())).differences
    (examined, *_more) = again.trace.examinations["one"]
    assert {one.node: one.vetoes for one in examined.nodes}["a"] == (("extender", "no licence"),)
    assert all(one.total == pytest.approx(sum(one.scores.values())) for one in examined.nodes if one.total is not None)


def test_a_difference_is_reported() -> None:
    cluster = state([node("n")], [job("a")])
    found = recorded(cluster, decide(list(cluster.nodes), list(cluster.jobs)), DEFAULT_POLICY_TEXT)
    assert replay(found).is_equal
    other = replace(found, outcome=replace(found.outcome, binds=()))
    (difference,) = replay(other).differences
    assert (difference.part, difference.is_recorded) == ("binds", False)
