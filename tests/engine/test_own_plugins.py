"""One's own plugins: found by entry point, heard like the engine's own, and no danger to a cycle when they fail."""

import re
from collections.abc import Callable, Iterator
from importlib.metadata import EntryPoint
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from tests.engine.worlds import bound, job, node, running, state

from hekla.domain.errors import Invalid
from hekla.domain.phases import GangPhase
from hekla.engine import cycle, registry
from hekla.engine.decisions import Decisions
from hekla.engine.extension_points import ExtensionPoint, Vote
from hekla.engine.policy import parse


class Alphabet:
    """A worked example: likes nodes whose names come late, refuses some, and lets nobody in whom a list names."""

    def open_session(self, session, option) -> None:
        weight = option.number("weight", 1.0)
        refused = str(option.arguments.get("refuses", ""))

        def score(_pod, table, rows):
            return np.array([ord(one.name[0]) * weight for one in table.nodes])[rows]

        def enqueueable(job) -> Vote:
            return Vote.REJECT if job.group.name == refused else Vote.ABSTAIN

        session.register(ExtensionPoint.NODE_ORDER, option, score)
        session.register(ExtensionPoint.JOB_ENQUEUEABLE, option, enqueueable)


def fails(*_: object) -> None:
    raise RuntimeError("out of order")


class Failing:
    """Fails in the way that its argument names."""

    def open_session(self, session, option) -> None:
        how = option.arguments["how"]
        if how == "open":
            fails()
        if how == "change":
            session.on_change.append(fails)
        answers: dict[str, tuple[ExtensionPoint, Callable]] = {
            "score": (ExtensionPoint.NODE_ORDER, fails),
            "no number": (ExtensionPoint.NODE_ORDER, lambda _m, table, rows: np.full(len(table.used[rows]), np.nan)),
            "too few": (ExtensionPoint.NODE_ORDER, lambda _m, _table, _rows: np.zeros(99)),
            "order": (ExtensionPoint.JOB_ORDER, fails),
            "vote": (ExtensionPoint.JOB_READY, fails),
            "predicate": (ExtensionPoint.CHANGING_PREDICATE, lambda _m, _table: fails),
            "bit by bit": (ExtensionPoint.PREDICATE, lambda _m, _table: (fails() for _ in range(1))),
        }
        if how in answers:
            session.register(answers[how][0], option, answers[how][1])


class Grasping:
    """Names victims that nobody offered."""

    def open_session(self, session, option) -> None:
        everybody = [pod for job in session.jobs.values() for pod in job.pods]
        session.register(ExtensionPoint.PREEMPTABLE, option, lambda _pod, _candidates: everybody)


class Stumbling:
    """An action."""

    def execute(self, session, _arguments) -> None:
        session.table.idle[:] = 0
        fails()


@pytest.fixture(autouse=True)
def installed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """As if a package had been installed that brings these."""
    values = {
        "hekla.plugins": {
            "alphabet": ":Alphabet",
            "failing": ":Failing",
            "grasping": ":Grasping",
            "absent": ":Nowhere",
        },
        "hekla.actions": {"stumble": ":Stumbling"},
    }
    made = {
        group: [_instance(name, f"{__name__}{value}", group) for name, value in entries.items()]
        for group, entries in values.items()
    }
    monkeypatch.setattr(registry, "entry_points", lambda group: made[group])
    registry.reload()
    yield
    monkeypatch.undo()
    registry.reload()


class _Instance(EntryPoint):
    """An entry point may lead to a module or to an object; classes of this file are made objects."""

    def load(self):
        return super().load()()


def _instance(name: str, value: str, group: str) -> EntryPoint:
    return _Instance(name=name, value=value, group=group)


def decide(plugin: str, jobs=None, actions: str = "enqueue, allocate") -> Decisions:
    policy = parse(f"actions: '{actions}'\ntiers: [{{plugins: [{{name: gang}}, {{name: predicates}}, {plugin}]}}]")
    return cycle(state([node("a"), node("z"), node("m")], jobs or [job("one", 2)]), policy, 0.0)


def test_a_plugin_is_found_by_its_entry_point_and_scores() -> None:
    assert {bind.node for bind in decide("{name: alphabet}").binds} == {"z"}
    assert {bind.node for bind in decide("{name: alphabet, arguments: {weight: -1}}").binds} == {"a"}


def test_a_plugin_votes_and_its_switch_silences_it() -> None:
    jobs = [job("one", phase=GangPhase.PENDING)]
    assert bound(decide("{name: alphabet, arguments: {refuses: one}}", jobs)) == {}
    assert bound(decide("{name: alphabet, enableJobEnqueued: false, arguments: {refuses: one}}", jobs)) == {"one": 1}


@pytest.mark.parametrize("how", ["score", "no number", "too few"])
def test_a_plugin_that_only_scores_is_left_out_when_it_fails(how: str) -> None:
    decisions = decide(f"{{name: failing, arguments: {{how: {how}}}}}")
    assert bound(decisions) == {"one": 2}
    (fault,) = decisions.faults
    assert (fault.name, fault.point, fault.is_skipped) == ("failing", "node_order", True)


@pytest.mark.parametrize("how", ["open", "order", "vote", "predicate", "bit by bit", "change"])
def test_without_any_other_plugin_nothing_is_decided(how: str) -> None:
    decisions = decide(f"{{name: failing, arguments: {{how: {how}}}}}", [job("one", 2), job("two", 2)])
    assert not decisions.binds
    assert not decisions.faults[0].is_skipped
    assert decisions.phases == {"one": GangPhase.INQUEUE, "two": GangPhase.INQUEUE}
    assert {reasons[0].code for reasons in decisions.reasons.values()} == {"plugin_failed"}


def test_the_fault_says_what_happened() -> None:
    (fault,) = decide("{name: failing, arguments: {how: order}}", [job("one"), job("two")]).faults
    assert "RuntimeError: out of order" in fault.error
    assert "test_own_plugins.py" in fault.error


@pytest.mark.parametrize("how", ["open", "order", "vote", "predicate", "bit by bit", "change"])
def test_the_policy_may_have_any_plugin_left_out(how: str) -> None:
    decisions = decide(f"{{name: failing, arguments: {{how: {how}, onError: skip}}}}", [job("one", 2), job("two", 2)])
    assert bound(decisions) == {"one": 2, "two": 2}
    assert [fault.is_skipped for fault in decisions.faults] == [True]


def test_the_policy_may_insist_on_a_score() -> None:
    assert not decide("{name: failing, arguments: {how: score, onError: stop}}").binds


def test_onerror_is_skip_or_stop() -> None:
    with pytest.raises(Invalid) as caught:
        decide("{name: failing, arguments: {onError: maybe}}")
    assert caught.value.problems[0].path == "tiers[0].plugins[2].arguments.onError"


def test_two_faulty_plugins_are_both_named() -> None:
    decisions = decide("{name: failing, arguments: {how: score}}, {name: failing, arguments: {how: too few}}")
    assert bound(decisions) == {"one": 2}
    assert len(decisions.faults) == 2


def test_what_cannot_be_loaded_fails_only_where_it_is_used() -> None:
    assert bound(decide("{name: alphabet}")) == {"one": 2}
    (fault,) = decide("{name: absent}").faults
    assert (fault.name, fault.point) == ("absent", "open")
    assert "AttributeError" in fault.error


def test_nobody_is_evicted_whom_nobody_offered() -> None:
    jobs = [running(name, 4, name, minimum=1) for name in "amz"] + [job("new", 2)]
    decisions = decide("{name: grasping}", jobs, actions="preempt")
    assert not decisions.evictions
    assert [fault.name for fault in decisions.faults] == ["grasping"]


def test_an_action_that_fails_leaves_nothing_half_done() -> None:
    decisions = decide("{name: alphabet}", actions="allocate, stumble")
    assert not decisions.binds
    assert decisions.faults[0].name == "stumble"


def test_an_action_may_be_left_out() -> None:
    text = "actions: 'stumble, allocate'\ntiers: [{plugins: [{name: gang}]}]\n"
    policy = parse(text + "configurations: [{name: stumble, arguments: {onError: skip}}]")
    decisions = cycle(state([node("a")], [job("one", 2)]), policy, 0.0)
    assert bound(decisions) == {"one": 2}
    assert decisions.faults[0].is_skipped


README = (Path(registry.__file__).parent / "README.md").read_text()


def of_readme(first_line: str) -> ModuleType:
    """The example of the engine's README that begins so."""
    module = ModuleType("example")
    (source,) = (text for text in re.findall(r"```python\n(.*?)```", README, re.DOTALL) if text.startswith(first_line))
    exec(source, module.__dict__)  # noqa: S102  our own file: what it shows must run
    return module


def test_the_plugin_of_the_readme_likes_quiet_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    known = {**registry.plugins(), "quiet": of_readme("# mine")}
    monkeypatch.setattr(registry, "plugins", lambda: known)
    (text,) = re.findall(r"```yaml\n(.*?)```", README, re.DOTALL)
    nodes = [node("a"), node("b", labels={"noise": "low"}), node("c")]
    assert {bind.node for bind in cycle(state(nodes, [job("one", 2)]), parse(text), 0.0).binds} == {"b"}


def test_the_action_of_the_readme_evicts_from_noisy_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    known = {**registry.actions(), "hush": of_readme("# hush")}
    monkeypatch.setattr(registry, "actions", lambda: known)
    nodes = [node("a"), node("b", labels={"noise": "high"})]
    decisions = cycle(state(nodes, [running("one", 2, "a"), running("two", 2, "b")]), parse("actions: hush"), 0.0)
    assert {eviction.node for eviction in decisions.evictions} == {"b"}
