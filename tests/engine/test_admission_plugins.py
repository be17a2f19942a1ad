"""Admission plugins: `resourcequota` and `extender`."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest
from tests.engine.builders import bound, job, node, running, state

from hekla.domain.phases import GangPhase
from hekla.domain.resources import Resources
from hekla.engine import cycle
from hekla.engine.decisions import Decisions
from hekla.engine.model import PodGroupSpec, ResourceQuota
from hekla.engine.policy import parse

PENDING = {"phase": GangPhase.PENDING, "namespace": "team"}
POLICY = "actions: 'enqueue, allocate'\ntiers: [{plugins: [{name: gang}, %s]}]\n%s"


def quota(jobs: list[PodGroupSpec], quotas: list[ResourceQuota], compatibility: str = "hekla") -> Decisions:
    policy = parse(POLICY % ("{name: resourcequota}", f"compatibility: {compatibility}"))
    return cycle(replace(state([node("a", "16")], jobs), quotas=tuple(quotas)), policy, 0.0)


def amounts(**quantities: str) -> dict[str, float]:
    return dict(Resources.parse(quantities))


@pytest.mark.parametrize(
    ("hard", "admitted"),
    [
        ({"cpu": 4000.0}, {"one", "two"}),
        ({"cpu": 3000.0}, {"one"}),
        ({"requests.cpu": 3000.0}, {"one"}),
        ({"cpu": 0.0}, set()),
        ({"pods": 2.0}, {"one"}),
        ({"memory": 1.0, "nvidia.com/gpu": 0.0}, {"one", "two"}),
    ],
)
def test_quota_limits_the_admitted_jobs_of_a_namespace(hard: dict[str, float], admitted: set[str]) -> None:
    jobs = [
        job("one", 2, **PENDING),
        job("two", 2, created_at=1.0, **PENDING),
        job("other", 2, phase=GangPhase.PENDING),
    ]
    decisions = quota(jobs, [ResourceQuota("team", hard, Resources())])
    assert set(bound(decisions)) == admitted | {"other"}


def test_all_quotas_of_a_namespace_apply_and_a_refusal_has_a_reason() -> None:
    quotas = [ResourceQuota("team", {"cpu": 9000.0}), ResourceQuota("team", {"cpu": 1000.0})]
    reason = quota([job("one", 2, **PENDING)], quotas).reasons["one"][0]
    assert (reason.code, reason.ever) == ("namespace_quota", False)
    assert (reason.need.amount("cpu"), reason.have.amount("cpu")) == (2000, 1000)


def test_running_and_admitted_jobs_count_toward_the_quota() -> None:
    old = running("old", 2, "a", namespace="team")
    waits = job("waits", 3, namespace="team", phase=GangPhase.INQUEUE, task={"node_selector": {"moon": "yes"}})
    quotas = [ResourceQuota("team", {"cpu": 6000.0})]
    assert quota([old, waits, job("new", 1, **PENDING)], quotas).phases["new"] is GangPhase.INQUEUE
    assert quota([old, waits, job("new", 2, **PENDING)], quotas).phases["new"] is GangPhase.PENDING


def test_volcano_ignores_quota_names_with_requests_prefix() -> None:
    quotas = [ResourceQuota("team", {"requests.cpu": 1000.0}, Resources())]
    assert bound(quota([job("one", 2, **PENDING)], quotas, "volcano")) == {"one": 2}


# The extender.


def extend(
    arguments: str, answer: Callable[[str, Mapping[str, Any]], Any] | None, jobs: list[PodGroupSpec]
) -> Decisions:
    plugin = f"{{name: extender, arguments: {{extender.urlPrefix: 'http://x/v1/', {arguments}}}}}"

    def call(address: str, document: Mapping[str, Any], _timeout: float) -> Any:
        return answer(address, document)

    cluster = state([node("a"), node("b")], jobs)
    return cycle(cluster, parse(POLICY % (plugin, "")), 0.0, call=call if answer else None)


def test_extender_refuses_nodes() -> None:
    calls = []

    def answer(address: str, document: Mapping[str, Any]) -> Any:
        calls.append((address, document["nodes"], document["task"]["request"]))
        return {"refused": {"a": "not today"}}

    decisions = extend("extender.predicateVerb: filter", answer, [job("one", 2)])
    assert {bind.node for bind in decisions.binds} == {"b"}
    assert calls == [("http://x/v1/filter", ["a", "b"], {"cpu": "1"})]


def test_reasons_of_an_extender_are_bounded() -> None:
    names = [f"n{at}" for at in range(100)]
    policy = parse(POLICY % ("{name: extender, arguments: {extender: {predicateVerb: f}}}", ""))
    refused = {name: f"{name} {'x' * 1000}" for name in names}
    cluster = state([node(name) for name in names], [job("one")])
    (reason,) = cycle(cluster, policy, 0.0, call=lambda *_: {"refused": refused}).reasons["one"]
    assert len(reason.nodes) == 21
    assert sum(reason.nodes.values()) == 100
    assert max(map(len, reason.nodes)) == 200
    assert reason.ever, "it can answer otherwise in the next cycle"


def test_extender_scores_nodes() -> None:
    decisions = extend("extender.prioritizeVerb: p", lambda *_: {"scores": {"a": 1, "b": 7}}, [job("one")])
    assert decisions.binds[0].node == "b"


@pytest.mark.parametrize(("status", "phase"), [(1, GangPhase.INQUEUE), (0, GangPhase.INQUEUE), (-1, GangPhase.PENDING)])
def test_extender_votes_on_admission(status: int, phase: GangPhase) -> None:
    verb = "extender.jobEnqueueableVerb: may"
    assert extend(verb, lambda *_: {"status": status}, [job("one", **PENDING)]).phases["one"] is phase


@pytest.mark.parametrize("answer", [None, lambda *_: 1 / 0, lambda *_: "what?", lambda *_: {"status": 7}])
@pytest.mark.parametrize(("ignorable", "phase"), [("true", GangPhase.INQUEUE), ("false", GangPhase.PENDING)])
def test_invalid_extender_answer_counts_unless_ignorable(answer: Any, ignorable: str, phase: GangPhase) -> None:
    arguments = f"extender.jobEnqueueableVerb: may, extender.ignorable: {ignorable}"
    decisions = extend(arguments, answer, [job("one", **PENDING)])
    assert decisions.phases["one"] is phase
    assert not decisions.faults


@pytest.mark.parametrize(("ignorable", "count"), [("true", 2), ("false", 0)])
def test_missing_predicate_answer_refuses_nodes_unless_ignorable(ignorable: str, count: int) -> None:
    arguments = f"extender.predicateVerb: f, extender.prioritizeVerb: p, extender.ignorable: {ignorable}"
    assert len(extend(arguments, None, [job("one", 2)]).binds) == count


def test_extender_is_not_called_for_unmanaged_resources() -> None:
    arguments = "extender.predicateVerb: f, extender.managedResources: [{name: nvidia.com/gpu}]"
    assert len(extend(arguments, None, [job("one", 2)]).binds) == 2


def test_extender_receives_session_and_allocation_events() -> None:
    verbs = ("onSessionOpen", "onSessionClose", "jobEnqueued", "allocateFunc")
    calls = []
    arguments = ", ".join(f"extender.{verb}Verb: {verb}" for verb in verbs)
    extend(arguments, lambda address, _document: calls.append(address.rpartition("/")[2]), [job("one", **PENDING)])
    assert calls == ["onSessionOpen", "jobEnqueued", "allocateFunc", "onSessionClose"]
