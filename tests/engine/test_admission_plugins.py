"""Who is let in: quotas of namespaces, and what another program says."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest
from tests.engine.worlds import bound, job, node, running, state

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
    ("hard", "let_in"),
    [
        ({"cpu": 4000.0}, {"one", "two"}),
        ({"cpu": 3000.0}, {"one"}),
        ({"requests.cpu": 3000.0}, {"one"}),
        ({"cpu": 0.0}, set()),
        ({"pods": 2.0}, {"one"}),
        ({"memory": 1.0, "nvidia.com/gpu": 0.0}, {"one", "two"}),
    ],
)
def test_a_quota_bounds_what_a_namespace_is_let_in_with(hard: dict[str, float], let_in: set[str]) -> None:
    jobs = [
        job("one", 2, **PENDING),
        job("two", 2, created_at=1.0, **PENDING),
        job("other", 2, phase=GangPhase.PENDING),
    ]
    decisions = quota(jobs, [ResourceQuota("team", hard, Resources())])
    assert set(bound(decisions)) == let_in | {"other"}


def test_each_quota_of_a_namespace_counts_and_the_refusal_is_told() -> None:
    quotas = [ResourceQuota("team", {"cpu": 9000.0}), ResourceQuota("team", {"cpu": 1000.0})]
    reason = quota([job("one", 2, **PENDING)], quotas).reasons["one"][0]
    assert (reason.code, reason.ever) == ("namespace_quota", False)
    assert (reason.need.amount("cpu"), reason.have.amount("cpu")) == (2000, 1000)


def test_what_runs_counts_and_so_does_what_was_let_in_before() -> None:
    old = running("old", 2, "a", namespace="team")
    waits = job("waits", 3, namespace="team", phase=GangPhase.INQUEUE, task={"node_selector": {"moon": "yes"}})
    quotas = [ResourceQuota("team", {"cpu": 6000.0})]
    assert quota([old, waits, job("new", 1, **PENDING)], quotas).phases["new"] is GangPhase.INQUEUE
    assert quota([old, waits, job("new", 2, **PENDING)], quotas).phases["new"] is GangPhase.PENDING


def test_as_volcano_does_it_names_with_requests_are_not_understood() -> None:
    quotas = [ResourceQuota("team", {"requests.cpu": 1000.0}, Resources())]
    assert bound(quota([job("one", 2, **PENDING)], quotas, "volcano")) == {"one": 2}


# The extender.


def extend(
    arguments: str, answer: Callable[[str, Mapping[str, Any]], Any] | None, jobs: list[PodGroupSpec]
) -> Decisions:
    plugin = f"{{name: extender, arguments: {{extender.urlPrefix: 'http://x/v1/', {arguments}}}}}"

    def call(address: str, document: Mapping[str, Any], _timeout: float) -> Any:
        return answer(address, document)

    world = state([node("a"), node("b")], jobs)
    return cycle(world, parse(POLICY % (plugin, "")), 0.0, call=call if answer else None)


def test_another_program_refuses_nodes() -> None:
    asked = []

    def answer(address: str, document: Mapping[str, Any]) -> Any:
        asked.append((address, document["nodes"], document["task"]["request"]))
        return {"refused": {"a": "not today"}}

    decisions = extend("extender.predicateVerb: filter", answer, [job("one", 2)])
    assert {bind.node for bind in decisions.binds} == {"b"}
    assert asked == [("http://x/v1/filter", ["a", "b"], {"cpu": "1"})]


def test_another_program_scores_nodes() -> None:
    decisions = extend("extender.prioritizeVerb: p", lambda *_: {"scores": {"a": 1, "b": 7}}, [job("one")])
    assert decisions.binds[0].node == "b"


@pytest.mark.parametrize(("status", "phase"), [(1, GangPhase.INQUEUE), (0, GangPhase.INQUEUE), (-1, GangPhase.PENDING)])
def test_another_program_votes(status: int, phase: GangPhase) -> None:
    verb = "extender.jobEnqueueableVerb: may"
    assert extend(verb, lambda *_: {"status": status}, [job("one", **PENDING)]).phases["one"] is phase


@pytest.mark.parametrize("answer", [None, lambda *_: 1 / 0, lambda *_: "what?", lambda *_: {"status": 7}])
@pytest.mark.parametrize(("ignorable", "phase"), [("true", GangPhase.INQUEUE), ("false", GangPhase.PENDING)])
def test_no_good_answer_counts_as_the_policy_says(answer: Any, ignorable: str, phase: GangPhase) -> None:
    arguments = f"extender.jobEnqueueableVerb: may, extender.ignorable: {ignorable}"
    decisions = extend(arguments, answer, [job("one", **PENDING)])
    assert decisions.phases["one"] is phase
    assert not decisions.faults


@pytest.mark.parametrize(("ignorable", "count"), [("true", 2), ("false", 0)])
def test_nodes_without_an_answer(ignorable: str, count: int) -> None:
    arguments = f"extender.predicateVerb: f, extender.prioritizeVerb: p, extender.ignorable: {ignorable}"
    assert len(extend(arguments, None, [job("one", 2)]).binds) == count


def test_only_managed_resources_are_spoken_of() -> None:
    arguments = "extender.predicateVerb: f, extender.managedResources: [{name: nvidia.com/gpu}]"
    assert len(extend(arguments, None, [job("one", 2)]).binds) == 2


def test_it_is_told_what_happens() -> None:
    verbs = ("onSessionOpen", "onSessionClose", "jobEnqueued", "allocateFunc")
    asked = []
    arguments = ", ".join(f"extender.{verb}Verb: {verb}" for verb in verbs)
    extend(arguments, lambda address, _document: asked.append(address.rpartition("/")[2]), [job("one", **PENDING)])
    assert asked == ["onSessionOpen", "jobEnqueued", "allocateFunc", "onSessionClose"]
