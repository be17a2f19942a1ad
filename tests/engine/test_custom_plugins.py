"""Custom plugins: found by entry point, called like built-in ones, and contained when they fail."""

import re
from collections.abc import Callable, Iterator
from importlib.metadata import EntryPoint
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from tests.engine.builders import bound, job, node, running, state

from hekla.domain.errors import Invalid
from hekla.domain.phases import GangPhase
from hekla.engine import cycle, registry
from hekla.engine.decisions import Decisions
from hekla.engine.extension_points import ExtensionPoint, Vote
from hekla.engine.policy import parse


class Alphabet:
    """Scores nodes by the first letter of their name, and rejects the job that the argument `refuses` names."""

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
    """Fails as its argument `how` says."""

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


class EvictsEveryone:
    """Names victims that are not among the candidates."""

    def open_session(self, session, option) -> None:
        all_pods = [pod for job in session.jobs.values() for pod in job.pods]
        session.register(ExtensionPoint.PREEMPTABLE, option, lambda _pod, _candidates: all_pods)


class FailingAction:
    """An action that changes the session, then fails."""

    def execute(self, session, _arguments) -> None:
        session.table.idle[:] = 0
        fails()


@pytest.fixture(autouse=True)
def installed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Register the classes of this file as entry points of an installed package."""
    values = {
        "hekla.plugins": {
            "alphabet": ":Alphabet",
            "failing": ":Failing",
            "grasping": ":EvictsEveryone",
            "absent": ":Nowhere",
        },
        "hekla.actions": {"stumble": ":FailingAction"},
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
    """An entry point that loads an instance of the named class."""

    def load(self):
        return super().load()()


def _instance(name: str, value: str, group: str) -> EntryPoint:
    return _Instance(name=name, value=value, group=group)


def decide(plugin: str, jobs=None, actions: str = "enqueue, allocate") -> Decisions:
    policy = parse(f"actions: '{actions}'\ntiers: [{{plugins: [{{name: gang}}, {{name: predicates}}, {plugin}]}}]")
    return cycle(state([node("a"), node("z"), node("m")], jobs or [job("one", 2)]), policy, 0.0)


def test_plugin_is_found_by_its_entry_point_and_scores() -> None:
    assert {bind.node for bind in decide("{name: alphabet}").binds} == {"z"}
    assert {bind.node for bind in decide("{name: alphabet, arguments: {weight: -1}}").binds} == {"a"}


def test_plugin_votes_unless_its_switch_is_off() -> None:
    jobs = [job("one", phase=GangPhase.PENDING)]
    assert bound(decide("{name: alphabet, arguments: {refuses: one}}", jobs)) == {}
    assert bound(decide("{name: alphabet, enableJobEnqueued: false, arguments: {refuses: one}}", jobs)) == {"one": 1}


@pytest.mark.parametrize("how", ["score", "no number", "too few"])
def test_failing_scorer_is_skipped(how: str) -> None:
    decisions = decide(f"{{name: failing, arguments: {{how: {how}}}}}")
    assert bound(decisions) == {"one": 2}
    (fault,) = decisions.faults
    assert (fault.name, fault.point, fault.is_skipped) == ("failing", "node_order", True)


@pytest.mark.parametrize("how", ["open", "order", "vote", "predicate", "bit by bit", "change"])
def test_failure_of_a_required_plugin_decides_nothing(how: str) -> None:
    decisions = decide(f"{{name: failing, arguments: {{how: {how}}}}}", [job("one", 2), job("two", 2)])
    assert not decisions.binds
    assert not decisions.faults[0].is_skipped
    assert decisions.phases == {"one": GangPhase.INQUEUE, "two": GangPhase.INQUEUE}
    assert {reasons[0].code for reasons in decisions.reasons.values()} == {"plugin_failed"}


def test_fault_contains_the_error() -> None:
    (fault,) = decide("{name: failing, arguments: {how: order}}", [job("one"), job("two")]).faults
    assert "RuntimeError: out of order" in fault.error
    assert "test_custom_plugins.py" in fault.error


@pytest.mark.parametrize("how", ["open", "order", "vote", "predicate", "bit by bit", "change"])
def test_on_error_skip_leaves_out_any_plugin(how: str) -> None:
    decisions = decide(f"{{name: failing, arguments: {{how: {how}, onError: skip}}}}", [job("one", 2), job("two", 2)])
    assert bound(decisions) == {"one": 2, "two": 2}
    assert [fault.is_skipped for fault in decisions.faults] == [True]


def test_on_error_stop_applies_to_scorers() -> None:
    assert not decide("{name: failing, arguments: {how: score, onError: stop}}").binds


def test_on_error_is_skip_or_stop() -> None:
    with pytest.raises(Invalid) as caught:
        decide("{name: failing, arguments: {onError: maybe}}")
    assert caught.value.problems[0].path == "tiers[0].plugins[2].arguments.onError"


def test_two_failing_plugins_are_both_named() -> None:
    decisions = decide("{name: failing, arguments: {how: score}}, {name: failing, arguments: {how: too few}}")
    assert bound(decisions) == {"one": 2}
    assert len(decisions.faults) == 2


def test_unloadable_plugin_fails_only_if_the_policy_uses_it() -> None:
    assert bound(decide("{name: alphabet}")) == {"one": 2}
    (fault,) = decide("{name: absent}").faults
    assert (fault.name, fault.point) == ("absent", "open")
    assert "AttributeError" in fault.error


def test_victims_outside_the_candidates_are_a_fault() -> None:
    jobs = [running(name, 4, name, minimum=1) for name in "amz"] + [job("new", 2)]
    decisions = decide("{name: grasping}", jobs, actions="preempt")
    assert not decisions.evictions
    assert [fault.name for fault in decisions.faults] == ["grasping"]


def test_failing_action_leaves_no_partial_decisions() -> None:
    decisions = decide("{name: alphabet}", actions="allocate, stumble")
    assert not decisions.binds
    assert decisions.faults[0].name == "stumble"


def test_on_error_skip_leaves_out_an_action() -> None:
    text = "actions: 'stumble, allocate'\ntiers: [{plugins: [{name: gang}]}]\n"
    policy = parse(text + "configurations: [{name: stumble, arguments: {onError: skip}}]")
    decisions = cycle(state([node("a")], [job("one", 2)]), policy, 0.0)
    assert bound(decisions) == {"one": 2}
    assert decisions.faults[0].is_skipped


README = (Path(registry.__file__).parent / "README.md").read_text()


def readme_example(first_line: str) -> ModuleType:
    """The example of the engine's README that begins with `first_line`, as a module."""
    module = ModuleType("example")
    (source,) = (text for text in re.findall(r"```python\n(.*?)```", README, re.DOTALL) if text.startswith(first_line))
    exec(source, module.__dict__)  # noqa: S102  our own file: what it shows must run
    return module


def test_readme_plugin_prefers_quiet_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    known = {**registry.plugins(), "quiet": readme_example("# mine")}
    monkeypatch.setattr(registry, "plugins", lambda: known)
    (text,) = re.findall(r"```yaml\n(.*?)```", README, re.DOTALL)
    nodes = [node("a"), node("b", labels={"noise": "low"}), node("c")]
    assert {bind.node for bind in cycle(state(nodes, [job("one", 2)]), parse(text), 0.0).binds} == {"b"}


def test_readme_action_evicts_from_noisy_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    known = {**registry.actions(), "hush": readme_example("# hush")}
    monkeypatch.setattr(registry, "actions", lambda: known)
    nodes = [node("a"), node("b", labels={"noise": "high"})]
    decisions = cycle(state(nodes, [running("one", 2, "a"), running("two", 2, "b")]), parse("actions: hush"), 0.0)
    assert {eviction.node for eviction in decisions.evictions} == {"b"}


def test_plugins_that_read_the_clock_say_so() -> None:
    plain = 'actions: "enqueue, allocate"\ntiers:\n- plugins: [{name: gang}, {name: predicates}]\n'
    assert not parse(plain).reads_clock
    assert parse(plain.replace("gang", "sla")).reads_clock
    folder = Path(registry.__file__).parent / "plugins"
    reading = {path for path in folder.rglob("*.py") if re.search(r"session\.now|\.is_fresh\(", path.read_text())}
    names = {(path.parent if path.parent != folder else path).stem.replace("_", "-") for path in reading}
    names -= {"deviceshare"}  # only notes it in annotations
    assert names
    assert {name for name in names if not registry.reads_clock(name)} == set()


@pytest.mark.parametrize(("action", "plugin"), [("allocate", "alphabet"), ("stumble", "gang")])
def test_code_of_others_may_read_the_clock(action: str, plugin: str) -> None:
    assert parse(f'actions: "{action}"\ntiers:\n- plugins: [{{name: {plugin}}}]\n').reads_clock
