"""What plugins and actions declare as their inputs is what they read, and what happens without them."""

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.engine.builders import job, node, running, state

from hekla.domain.phases import GangPhase
from hekla.domain.resources import Resources
from hekla.domain.scheduling_inputs import Input
from hekla.engine import cycle, registry
from hekla.engine.constraints import Requirement
from hekla.engine.decisions import Decisions
from hekla.engine.input_check import inputs_of
from hekla.engine.inputs import Lack, Need, needs_of
from hekla.engine.model import (
    ClusterState,
    DisruptionBudget,
    HyperNode,
    NodeGroupAffinity,
    NodeSpec,
    NodeUsage,
    Numa,
    NumaCell,
    PodGroupSpec,
    QueueSpec,
    ResourceQuota,
)
from hekla.engine.policy import SchedulerPolicy, parse

ENGINE = Path(registry.__file__).parent
BUILT_IN = [
    *(("actions", name) for name in registry.actions() if (ENGINE / "actions" / f"{name}.py").exists()),
    *(("plugins", name) for name in registry.plugins() if not registry.is_external(name)),
]
HELPERS = ("disruption_budgets", "hierarchical_drf", "gang_eviction", "hypernode_allocation", "job_order")
"""Modules of the engine that read inputs for the plugins and actions that import them."""
OF_NODE, OF_POD = {"node", "nodes", "_nodes"}, {"spec"}
OF_JOB, OF_QUEUE = {"group", "job"}, {"queue", "q", "mine", "other"}
READS: dict[str, list[tuple[Input, set[str] | None]]] = {
    "labels": [(Input.NODE_LABELS, OF_NODE), (Input.POD_LABELS, OF_POD)],
    "annotations": [
        (Input.NODE_ANNOTATIONS, OF_NODE),
        (Input.POD_ANNOTATIONS, OF_POD),
        (Input.JOB_ANNOTATIONS, OF_JOB),
        (Input.QUEUE_ANNOTATIONS, OF_QUEUE),
    ],
    "images": [(Input.NODE_IMAGES, OF_NODE), (Input.POD_IMAGES, {"constraints"})],
    "affinity": [(Input.QUEUE_NODE_GROUPS, OF_QUEUE)],
    "devices": [(Input.DEVICES, {"session"})],
    **{
        name: [(one, None)]
        for one, names in {
            Input.NODE_LABELS: ("domain", "matching_affinity"),
            Input.NODE_TAINTS: ("taints", "untolerated"),
            Input.NODE_IMAGES: ("image_worth",),
            Input.NODE_USAGE: ("usage",),
            Input.NUMA_CELLS: ("numa",),
            Input.HYPERNODES: ("hypernodes",),
            Input.STORAGE: ("storage", "volume_claims"),
            Input.DEVICES: ("device_claims", "claimed_devices"),
            Input.POD_LIMITS: ("limits", "device_limits"),
            Input.TOLERATIONS: ("tolerations",),
            Input.AFFINITY: (
                "required_node_terms", "preferred_node_terms", "pod_affinity", "pod_anti_affinity",
                "preferred_pod_affinity", "topology_spread",
            ),
            Input.HOST_PORTS: ("host_ports",),
            Input.PLACEMENT_TIMES: ("scheduled_at",),
            Input.PRIORITY_CLASSES: ("priority_class",),
            Input.JOB_TOPOLOGY: ("topology", "uses_hypernodes"),
            Input.SUB_GROUPS: ("sub_groups",),
            Input.POD_LABELS: ("has_more_labels",),
            Input.BUDGETS: ("budgets",),
            Input.RESOURCE_QUOTAS: ("quotas",),
            Input.SHUFFLE_TIME: ("last_shuffle_at",),
            Input.EXTENDER_CALLS: ("call",),
        }.items()
        for name in names
    },
}  # fmt: skip
"""The inputs behind attributes: of which objects, if not of any."""


def extension(kind: str, name: str) -> object:
    return (registry.actions() if kind == "actions" else registry.plugins())[name]


def declared(kind: str, name: str) -> tuple[Need, ...]:
    return needs_of(extension(kind, name)) or ()


def files_of(kind: str, name: str) -> Iterator[Path]:
    """The files of a plugin or an action, and the helpers that it imports."""
    path = ENGINE / kind / name.replace("-", "_")
    own = sorted(path.glob("*.py")) if path.is_dir() else [path.with_suffix(".py")]
    text = "".join(file.read_text(encoding="utf-8") for file in own)
    yield from own
    yield from (ENGINE / f"{helper}.py" for helper in HELPERS if re.search(rf"\b{helper}\b", text))


def owner_of(read: ast.expr) -> str:
    """The last name before the attribute: `spec` of `pod.spec.labels`, `nodes` of `table.nodes[0].labels`."""
    while isinstance(read, ast.Subscript | ast.Call):
        read = read.value if isinstance(read, ast.Subscript) else read.func
    return read.attr if isinstance(read, ast.Attribute) else read.id if isinstance(read, ast.Name) else ""


def reads(kind: str, name: str) -> set[Input]:
    found = set()
    for file in files_of(kind, name):
        for read in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(read, ast.Attribute) and isinstance(read.ctx, ast.Load):
                owner = owner_of(read.value)
                found |= {one for one, owners in READS.get(read.attr, ()) if owners is None or owner in owners}
    return found


@pytest.mark.parametrize(("kind", "name"), BUILT_IN)
def test_every_plugin_and_action_declares_its_inputs(kind: str, name: str) -> None:
    assert needs_of(extension(kind, name)) is not None


@pytest.mark.parametrize(("kind", "name"), BUILT_IN)
def test_declared_inputs_are_those_that_the_code_reads(kind: str, name: str) -> None:
    behind_annotations = {Input.POD_CARDS} if name == "deviceshare" else set()
    assert {need.input for need in declared(kind, name)} == reads(kind, name) | behind_annotations


# What happens without an input.

NOW = 1_000.0
NOON = 12 * 3_600.0
WEB = (Requirement("app", "In", ("web",)),)
CARDS = {"volcano.sh/gpu-number": "2", "cpu": "8", "memory": "16Gi", "pods": "110"}
EVEN = "arguments: {thresholds: {cpu: 30}, targetThresholds: {cpu: 50}}"
ZONE, NUMA_POLICY = "volcano.sh/revocable-zone", "volcano.sh/numa-topology-policy"
NIGHT = 'arguments: {tdm.revocable-zone.night: "22:00-06:00"}'
GANG_URGENT = job("urgent", priority=9, namespace="team")


@dataclass(frozen=True)
class Case:
    """A policy with one plugin, and a state that contains the input."""

    plugin: str
    input: Input
    lack: Lack
    state: ClusterState
    options: str = ""
    actions: str = "allocate"
    compatibility: str = "hekla"
    now: float = NOW

    def policy(self, *, is_alone: bool = False) -> SchedulerPolicy:
        """The policy; `is_alone`: without the plugin."""
        options = f", {self.options}" if self.options else ""
        own = "" if is_alone else f"{{name: {self.plugin}{options}}}, "
        return parse(
            f"actions: '{self.actions}'\ncompatibility: {self.compatibility}\n"
            f"tiers: [{{plugins: [{own}{{name: priority}}, {{name: gang}}]}}, {{plugins: [{{name: predicates}}]}}]"
        )


def with_pods(group: PodGroupSpec, **fields: Any) -> PodGroupSpec:
    return replace(group, pods=tuple(replace(pod, **fields) for pod in group.pods))


def full_node(*groups: PodGroupSpec, **more: Any) -> ClusterState:
    """One core, which these pods have, and an urgent job that waits for it."""
    return replace(state([node("a", "1")], [*groups, GANG_URGENT]), **more)


def on_a(**fields: Any) -> PodGroupSpec:
    """A running pod on node a."""
    return with_pods(running("old", 1, "a", minimum=0, namespace="team"), **fields)


def two_nodes(group: PodGroupSpec, queue: QueueSpec | None = None, **second: Any) -> ClusterState:
    """Nodes a and b; b, with these fields, would not be chosen without them."""
    return state([node("a"), node("b", **second)], [group], [queue or QueueSpec("q")])


def rivals(first: Mapping[str, Any], second: Mapping[str, Any], queue: QueueSpec | None = None) -> ClusterState:
    """One core for two jobs; the first is chosen without the plugin."""
    return state([node("a", "1")], [job("one", **first), job("two", **second)], [queue or QueueSpec("q")])


def branches() -> ClusterState:
    """Two queues; the second weighs nine times as much."""
    queues = [
        QueueSpec(name, annotations={"volcano.sh/hierarchy": f"root/{name}", "volcano.sh/hierarchy-weights": weights})
        for name, weights in (("x", "1/1"), ("y", "1/9"))
    ]
    jobs = [job(f"{queue}{n}", queue=queue) for n in range(8) for queue in ("x", "y")]
    return state([node("a", "8")], jobs, queues)


def uneven(**more: Any) -> ClusterState:
    """A busy and an idle node."""
    old = NodeUsage(10, 10, NOW - 10) if more.pop("is_measured", False) else None
    jobs = [running(f"j{n}", 1, "a", minimum=0, priority=n) for n in range(8)]
    return replace(state([node("a", "8", usage=old), node("b", "8", usage=old)], jobs), **more)


def lent(**more: Any) -> ClusterState:
    """Revocable pods on a node whose window is closed; their job may lose two at a time."""
    pods = with_pods(running("r", 4, "a", minimum=0), annotations={ZONE: "*"})
    pods = replace(pods, annotations={"volcano.sh/jdb-max-unavailable": "2"})
    return replace(state([node("a", labels={ZONE: "night"})], [pods]), **more)


def numa_pair() -> ClusterState:
    cell = NumaCell(Resources.parse({"cpu": "4"}), Resources.parse({"cpu": "4"}))
    size = Resources.parse({"cpu": "1", "memory": "1Gi"})
    pinned = with_pods(job("one"), annotations={NUMA_POLICY: "single-numa-node"}, request=size, limits=size)
    return two_nodes(pinned, numa=Numa("single-numa-node", "static", (cell,)))


def cards(index: str) -> ClusterState:
    """A node with two cards. A running pod has the card with this index."""
    request = Resources.parse({"cpu": "1", "volcano.sh/gpu-number": "1"})
    old = with_pods(running("old", 1, "a", minimum=0), request=request, annotations={"volcano.sh/gpu-index": index})
    server = NodeSpec("a", Resources.parse(CARDS))
    return state([server], [old, with_pods(job("one"), request=request)])


def virtual_cards() -> ClusterState:
    request = Resources.parse({"cpu": "1", "volcano.sh/vgpu-number": "1"})
    amounts = Resources.parse({**CARDS, "volcano.sh/vgpu-number": "10"})
    notes = {"volcano.sh/node-vgpu-register": "GPU-1,10,8000,NVIDIA-A100,true,"}
    return state([NodeSpec("a", amounts, annotations=notes)], [with_pods(job("one"), request=request)])


def limited_cards(quota: str) -> ClusterState:
    """A node with a card of a known model, and a queue with these limits."""
    request = Resources.parse({"cpu": "1", "nvidia.com/gpu": "1"})
    server = NodeSpec("a", Resources.parse({**CARDS, "nvidia.com/gpu": "1"}), labels={"nvidia.com/gpu.product": "A100"})
    queue = QueueSpec("q", annotations={"volcano.sh/card.quota": quota})
    return state([server], [with_pods(job("one"), request=request)], [queue])


GROUPED = two_nodes(
    job("one"), QueueSpec("q", affinity=NodeGroupAffinity(required=("g",))), labels={"volcano.sh/nodegroup-name": "g"}
)
CALLS = "arguments: {extender.urlPrefix: 'http://x', extender.predicateVerb: filter, extender.ignorable: %s}"
CACHED = two_nodes(
    job("one", annotations={"hekla.io/datasets": "cats"}), annotations={"hekla.io/cached-datasets": "cats"}
)
COOLING = full_node(on_a(scheduled_at=NOW - 100, annotations={"volcano.sh/cooldown-time": "10m"}))
URGENT = rivals({}, {"annotations": {"volcano.sh/sla-waiting-time": "30m"}})
APART = state([node("a"), node("b")], [job("one", 2, annotations={"volcano.sh/task-topology-anti-affinity": "w"})])
NEAR = replace(
    state([node("a"), node("b")], [running("old", 1, "b"), job("one")]),
    hyper_nodes=(HyperNode("left", 1, frozenset("a")), HyperNode("right", 1, frozenset("b"))),
)
BUDGET = (DisruptionBudget("team", WEB, 0),)
LABELLED = full_node(on_a(labels={"app": "web"}), budgets=BUDGET)
EMPTY_QUOTA = replace(
    state([node("a")], [job("one", namespace="team", phase=GangPhase.PENDING)]),
    quotas=(ResourceQuota("team", {"cpu": 0.0}),),
)
OFFLINE = with_pods(job("one"), annotations={"volcano.sh/qos-level": "BE"})
TARGET = "arguments: {oversubscription.cpu: 60}"


def oversubscribed(percent: float, **more: Any) -> ClusterState:
    """A node of ten cores, all requested by an online pod, with an offline pod there and another one that waits."""
    here = node("a", "10", usage=NodeUsage(percent, 1, NOW))
    busy = running("on", 1, "a", cpu="10", minimum=0)
    there = with_pods(running("off", 1, "a", minimum=0), annotations={"volcano.sh/qos-level": "BE"})
    return replace(state([here], [busy, there, OFFLINE]), **more)


CASES = [
    Case(
        "usage",
        Input.NODE_USAGE,
        Lack.NOTHING,
        state([node("a", usage=NodeUsage(95, 9, NOW)), node("b", usage=NodeUsage(5, 5, NOW))], [job("one")]),
    ),
    Case(
        "conformance",
        Input.PRIORITY_CLASSES,
        Lack.NOTHING,
        full_node(on_a(priority_class="system-node-critical")),
        actions="allocate, preempt",
    ),
    Case("cdp", Input.PLACEMENT_TIMES, Lack.NOTHING, COOLING, actions="allocate, preempt"),
    Case("cdp", Input.POD_ANNOTATIONS, Lack.NOTHING, COOLING, actions="allocate, preempt"),
    Case("drf", Input.QUEUE_ANNOTATIONS, Lack.FALLBACK, branches(), "enableHierarchy: true"),
    Case("sla", Input.JOB_ANNOTATIONS, Lack.NOTHING, URGENT),
    Case("sla", Input.JOB_ANNOTATIONS, Lack.FALLBACK, URGENT, "arguments: {sla-waiting-time: 10h}"),
    Case("resourcequota", Input.RESOURCE_QUOTAS, Lack.NOTHING, EMPTY_QUOTA, actions="enqueue, allocate"),
    Case("pdb", Input.BUDGETS, Lack.NOTHING, LABELLED, actions="allocate, preempt"),
    Case("pdb", Input.BUDGETS, Lack.WRONG, LABELLED, actions="allocate, shuffle", compatibility="volcano"),
    Case(
        "pdb",
        Input.POD_LABELS,
        Lack.WRONG,
        full_node(on_a(labels={"app": "web"})),
        actions="allocate, preempt",
        compatibility="volcano",
    ),
    Case("data-locality", Input.NODE_ANNOTATIONS, Lack.NOTHING, CACHED),
    Case("data-locality", Input.JOB_ANNOTATIONS, Lack.NOTHING, CACHED),
    Case("colocation", Input.POD_ANNOTATIONS, Lack.NOTHING, state([node("a", "1")], [OFFLINE, job("two")])),
    Case("colocation", Input.NODE_USAGE, Lack.FALLBACK, oversubscribed(20), TARGET),
    Case(
        "colocation",
        Input.SHUFFLE_TIME,
        Lack.WRONG,
        oversubscribed(90, last_shuffle_at=NOW - 10),
        TARGET,
        "allocate, shuffle",
    ),
    Case("numa-aware", Input.POD_ANNOTATIONS, Lack.NOTHING, numa_pair()),
    Case("numa-aware", Input.POD_LIMITS, Lack.NOTHING, numa_pair()),
    Case("numa-aware", Input.NUMA_CELLS, Lack.REFUSES_SOME, numa_pair()),
    Case("nodegroup", Input.QUEUE_NODE_GROUPS, Lack.REFUSES_ALL, GROUPED),
    Case("nodegroup", Input.QUEUE_NODE_GROUPS, Lack.FALLBACK, GROUPED, "arguments: {strict: false}"),
    Case("nodegroup", Input.NODE_LABELS, Lack.REFUSES_ALL, GROUPED),
    Case("capacity-card", Input.QUEUE_ANNOTATIONS, Lack.NOTHING, limited_cards('{"H100": 1}')),
    Case("capacity-card", Input.NODE_LABELS, Lack.REFUSES_SOME, limited_cards('{"A100": 1}')),
    Case("tdm", Input.JOB_ANNOTATIONS, Lack.FALLBACK, lent(), NIGHT, "allocate, shuffle", now=NOON),
    Case("tdm", Input.SHUFFLE_TIME, Lack.WRONG, lent(last_shuffle_at=NOON - 10), NIGHT, "allocate, shuffle", now=NOON),
    Case("rescheduling", Input.SHUFFLE_TIME, Lack.WRONG, uneven(last_shuffle_at=NOW - 10), EVEN, "allocate, shuffle"),
    Case("rescheduling", Input.NODE_USAGE, Lack.FALLBACK, uneven(is_measured=True), EVEN, "allocate, shuffle"),
    Case("task-topology", Input.JOB_ANNOTATIONS, Lack.NOTHING, APART),
    Case("network-topology-aware", Input.HYPERNODES, Lack.NOTHING, NEAR),
    Case(
        "predicates",
        Input.NODE_LABELS,
        Lack.REFUSES_SOME,
        two_nodes(with_pods(job("one"), node_selector={"zone": "b"}), labels={"zone": "b"}),
    ),
    Case(
        "deviceshare",
        Input.NODE_ANNOTATIONS,
        Lack.REFUSES_SOME,
        virtual_cards(),
        "arguments: {deviceshare.VGPUEnable: true}",
    ),
    Case("deviceshare", Input.POD_CARDS, Lack.FALLBACK, cards("1"), "arguments: {deviceshare.GPUNumberEnable: true}"),
    Case(
        "deviceshare",
        Input.POD_CARDS,
        Lack.WRONG,
        cards("0"),
        "arguments: {deviceshare.GPUNumberEnable: true}",
        compatibility="volcano",
    ),
    Case("extender", Input.EXTENDER_CALLS, Lack.REFUSES_ALL, two_nodes(job("one")), CALLS % "false"),
    Case("extender", Input.EXTENDER_CALLS, Lack.NOTHING, two_nodes(job("one")), CALLS % "true"),
]
NODE_FIELDS: dict[Input, dict[str, Any]] = {
    Input.NODE_LABELS: {"labels": {}},
    Input.NODE_ANNOTATIONS: {"annotations": {}},
    Input.NODE_USAGE: {"usage": None},
    Input.NUMA_CELLS: {"numa": None},
}
POD_FIELDS: dict[Input, dict[str, Any]] = {
    Input.POD_LABELS: {"labels": {}, "has_more_labels": False},
    Input.POD_ANNOTATIONS: {"annotations": {}},
    Input.POD_CARDS: {"annotations": {}},
    Input.POD_LIMITS: {"limits": Resources()},
    Input.PLACEMENT_TIMES: {"scheduled_at": 0.0},
    Input.PRIORITY_CLASSES: {"priority_class": ""},
}
JOB_FIELDS: dict[Input, dict[str, Any]] = {Input.JOB_ANNOTATIONS: {"annotations": {}}}
QUEUE_FIELDS: dict[Input, dict[str, Any]] = {
    Input.QUEUE_ANNOTATIONS: {"annotations": {}},
    Input.QUEUE_NODE_GROUPS: {"affinity": None},
}
STATE_FIELDS: dict[Input, dict[str, Any]] = {
    Input.HYPERNODES: {"hyper_nodes": ()},
    Input.BUDGETS: {"budgets": ()},
    Input.RESOURCE_QUOTAS: {"quotas": ()},
    Input.SHUFFLE_TIME: {"last_shuffle_at": None},
}


def without(full: ClusterState, one: Input) -> ClusterState:
    """The state without this input."""
    groups = [with_pods(replace(group, **JOB_FIELDS.get(one, {})), **POD_FIELDS.get(one, {})) for group in full.jobs]
    return replace(
        full,
        nodes=tuple(replace(each, **NODE_FIELDS.get(one, {})) for each in full.nodes),
        queues=tuple(replace(each, **QUEUE_FIELDS.get(one, {})) for each in full.queues),
        jobs=tuple(groups),
        **STATE_FIELDS.get(one, {}),
    )


def answer_call(_address: str, _document: Mapping[str, Any], _timeout: float) -> Mapping[str, Any]:
    """An extender that refuses node a."""
    return {"refused": {"a": "not today"}}


def outcome(decisions: Decisions) -> tuple[object, ...]:
    assert not decisions.faults
    evictions = sorted((eviction.pod, eviction.action) for eviction in decisions.evictions)
    return [(bind.pod, bind.node, bind.annotations.get("volcano.sh/gpu-index")) for bind in decisions.binds], evictions


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.plugin}-{case.input}-{case.lack}")
def test_what_happens_without_an_input_is_what_is_declared(case: Case) -> None:
    needs = [need for one in inputs_of(case.policy(), {}) if one.name == case.plugin for need in one.lacking]
    assert case.lack in {need.lack for need in needs if need.input is case.input}
    less = without(case.state, case.input)
    has_call = case.input is not Input.EXTENDER_CALLS
    full = outcome(cycle(case.state, case.policy(), case.now, answer_call))
    lacking = outcome(cycle(less, case.policy(), case.now, answer_call if has_call else None))
    alone = outcome(cycle(less, case.policy(is_alone=True), case.now))
    assert full != lacking
    if case.lack is Lack.NOTHING:
        assert lacking == alone
    if case.lack in (Lack.REFUSES_ALL, Lack.REFUSES_SOME):
        assert not lacking[0]
    if case.lack is Lack.REFUSES_ALL:
        assert alone[0]


def test_everything_that_is_worse_than_a_part_has_a_case() -> None:
    worse = {
        (name, need.input, need.lack) for kind, name in BUILT_IN for need in declared(kind, name)
        if need.lack is not Lack.PART
    }  # fmt: skip
    assert {(case.plugin, case.input, case.lack) for case in CASES} == worse


# The comparison of a policy with what is supplied.


def test_needs_depend_on_arguments() -> None:
    text = "actions: allocate\ntiers: [{plugins: [{name: predicates, arguments: {%s}}]}]"
    on = inputs_of(parse(text % ""), {})[-1]
    off = inputs_of(parse(text % "predicate.TaintTolerationEnable: false"), {})[-1]
    taints = {Input.NODE_TAINTS, Input.TOLERATIONS}
    assert taints <= {need.input for need in on.lacking}
    assert not taints & {need.input for need in off.lacking}


def test_the_worst_lack_counts_and_paths_name_the_plugin() -> None:
    text = "actions: shuffle\ntiers: [{plugins: [{name: gang}]}, {plugins: [{name: drf}, {name: rescheduling}]}]"
    found = {one.name: one for one in inputs_of(parse(text), {})}
    assert (found["rescheduling"].path, found["rescheduling"].lack) == ("tiers[1].plugins[1].name", Lack.WRONG)
    assert found["drf"].lack is None
    supplied = inputs_of(parse(text), {Input.SHUFFLE_TIME: "records"})[-1]
    assert [need.input for need in supplied.supplied] == [Input.SHUFFLE_TIME]
    assert supplied.lack is Lack.FALLBACK


def test_external_plugin_may_declare_its_inputs_or_not(monkeypatch: pytest.MonkeyPatch) -> None:
    fails = Need(Input.NODE_USAGE, Lack.NOTHING, when=lambda _option, _policy: 1 / 0 > 0)
    external = {
        "silent": SimpleNamespace(),
        "odd": SimpleNamespace(NEEDS="everything"),
        "frank": SimpleNamespace(NEEDS=(Need(Input.NUMA_CELLS, Lack.REFUSES_ALL), fails)),
    }
    monkeypatch.setattr(registry, "plugins", lambda: external)
    policy = parse("actions: allocate\ntiers: [{plugins: [{name: silent}, {name: odd}, {name: frank}]}]")
    silent, odd, frank = inputs_of(policy, {})[-3:]
    assert (silent.is_declared, odd.is_declared, frank.is_declared) == (False, False, True)
    assert [need.input for need in frank.lacking] == [Input.NUMA_CELLS, Input.NODE_USAGE]


def test_inputs_and_effects_have_words() -> None:
    assert all(one.label for one in Input)
    assert all(need.message for kind, name in BUILT_IN for need in declared(kind, name))
