"""The `deviceshare` plugin: cards of a node, shared, virtual or partitioned."""

import json
from dataclasses import replace

import pytest
from tests.engine import builders

from hekla.domain.resources import Resources
from hekla.engine import cycle
from hekla.engine.decisions import Decisions
from hekla.engine.model import ClusterState, NodeSpec, PodGroupSpec, PodSpec, PodStatus
from hekla.engine.plugins.deviceshare import links
from hekla.engine.plugins.deviceshare.inventory import parse_links
from hekla.engine.policy import SchedulerPolicy, parse

POLICY = """\
actions: "{actions}"
tiers:
- plugins:
  - name: priority
  - name: gang
- plugins:
  - name: predicates
  - name: deviceshare
    arguments: {{{arguments}}}
"""
SHARING, NUMBER, VIRTUAL = (
    f"deviceshare.{mode}: true" for mode in ("GPUSharingEnable", "GPUNumberEnable", "VGPUEnable")
)


def policy(*arguments: str, actions: str = "allocate", compatibility: str = "hekla") -> SchedulerPolicy:
    text = POLICY.format(actions=actions, arguments=", ".join(arguments))
    return replace(parse(text), compatibility=compatibility)


def server(name: str, cards: int = 4, memory: int = 32, **more: object) -> NodeSpec:
    amounts = {"cpu": "32", "memory": "64Gi", "pods": "110", "nvidia.com/gpu": str(cards)}
    amounts |= {"volcano.sh/gpu-number": str(cards), "volcano.sh/gpu-memory": str(memory)}
    return NodeSpec(name, Resources.parse(amounts), **more)


def virtual_server(name: str, *cards: str) -> NodeSpec:
    amounts = {"cpu": "32", "memory": "64Gi", "pods": "110", "volcano.sh/vgpu-number": "100"}
    return NodeSpec(name, Resources.parse(amounts), annotations={"volcano.sh/node-vgpu-register": ":".join(cards)})


def job_with_limits(name: str, count: int, *limits: dict[str, str], **more: object) -> PodGroupSpec:
    """A job of equal pods. Each entry of `limits` is one container's limits of cards."""
    parsed = tuple(Resources.parse({f"volcano.sh/{k}": v for k, v in one.items()}) for one in limits)
    request = sum(parsed, Resources.parse({"cpu": "1"}))
    tasks = tuple(
        PodSpec(f"{name}-{i}", f"{name}-w-{i}", "w", request, device_limits=parsed, **more) for i in range(count)
    )
    return replace(builders.job(name, minimum=1), pods=tasks, min_resources=None)


def devices_by_pod(decisions: Decisions, note: str = "volcano.sh/gpu-index") -> dict[str, tuple[str, str]]:
    """(node, cards) of each bound pod, from the annotation `note`."""
    return {bind.pod: (bind.node, bind.annotations.get(note, "")) for bind in decisions.binds}


def test_pod_gets_memory_of_one_card_and_its_index() -> None:
    decisions = builders.decide([server("a")], [job_with_limits("j", 3, {"gpu-memory": "5"})], policy=policy(SHARING))
    assert devices_by_pod(decisions) == {"j-0": ("a", "0"), "j-1": ("a", "1"), "j-2": ("a", "2")}


def test_memory_is_not_combined_from_several_cards() -> None:
    jobs = [job_with_limits("j", 5, {"gpu-memory": "5"})]
    assert len(builders.decide([server("a")], jobs, policy=policy(SHARING)).binds) == 4
    assert not builders.decide(
        [server("a")], [job_with_limits("j", 1, {"gpu-memory": "9"})], policy=policy(SHARING)
    ).binds


@pytest.mark.parametrize("limits", [{"gpu-number": "1"}, {"gpu-number": "1", "gpu-memory": "1"}])
def test_nobody_gets_a_whole_card_where_parts_are_given(limits: dict[str, str]) -> None:
    """Volcano counts whole cards apart from the parts."""
    state = builders.state([server("a")], [job_with_limits("j", 1, limits)])
    ours, volcanos = (cycle(state, policy(SHARING, compatibility=c), 0.0) for c in ("hekla", "volcano"))
    assert (len(ours.binds), len(volcanos.binds)) == (0, 1)
    (reason,) = ours.reasons["j"]
    assert (dict(reason.nodes), reason.ever) == ({"GPUs are shared": 1}, False)


def test_whole_cards_are_healthy_and_unused() -> None:
    node = server("a", annotations={"volcano.sh/gpu-unhealthy-ids": "0"})
    decisions = builders.decide([node], [job_with_limits("j", 3, {"gpu-number": "2"})], policy=policy(NUMBER))
    assert devices_by_pod(decisions) == {"j-0": ("a", "1,2")}


@pytest.mark.parametrize(("note", "expected"), [({"volcano.sh/gpu-index": "0,1"}, "2,3"), ({}, "2,3")])
def test_running_pods_keep_their_cards(note: dict[str, str], expected: str) -> None:
    old = job_with_limits("old", 1, {"gpu-number": "2"}, status=PodStatus.RUNNING, node="a", annotations=note)
    decisions = builders.decide(
        [server("a")], [old, job_with_limits("new", 1, {"gpu-number": "2"})], policy=policy(NUMBER)
    )
    assert devices_by_pod(decisions) == {"new-0": ("a", expected)}


def test_recorded_cards_are_read_back_in_the_next_cycle() -> None:
    jobs, rules = [job_with_limits("j", 2, {"gpu-number": "1"})], policy(NUMBER)
    first = builders.decide([server("a")], jobs, policy=rules)
    annotations = {bind.pod: bind.annotations for bind in first.binds}
    ran = tuple(replace(t, status=PodStatus.RUNNING, node="a", annotations=annotations[t.uid]) for t in jobs[0].pods)
    rest = replace(jobs[0], pods=ran[1:])
    again = builders.decide([server("a")], [rest, job_with_limits("k", 2, {"gpu-number": "1"})], policy=rules)
    assert devices_by_pod(again) == {"k-0": ("a", "0"), "k-1": ("a", "2")}


def test_gang_that_does_not_fit_releases_its_cards() -> None:
    big = replace(job_with_limits("a-big", 3, {"gpu-number": "2"}), min_available=3, min_task_member={"w": 3})
    decisions = builders.decide(
        [server("a")], [big, job_with_limits("b", 2, {"gpu-number": "2"})], policy=policy(NUMBER)
    )
    assert devices_by_pod(decisions) == {"b-0": ("a", "0,1"), "b-1": ("a", "2,3")}


def test_preemptor_is_pipelined_onto_the_cards_of_its_victims() -> None:
    old = job_with_limits("old", 1, {"gpu-memory": "8"}, status=PodStatus.RUNNING, node="a")
    new = replace(job_with_limits("new", 1, {"gpu-memory": "8"}, preemptable=False), priority=10)
    rules = policy(SHARING, actions="allocate, preempt")
    spread = replace(old, min_available=0, min_task_member={})
    decisions = builders.decide([server("a", cards=1, memory=8)], [spread, new], policy=rules)
    assert [eviction.pod for eviction in decisions.evictions] == ["old-0"]
    assert decisions.pipelined == {"new-0": "a"}


# Virtual cards.

CARD = "{},{},{},V100,{},hami-core"


def card(uuid: str, count: int = 4, memory: int = 16000, health: str = "true") -> str:
    return CARD.format(uuid, count, memory, health)


def virtual(count: int, *limits: dict[str, str], cards: list[str], rules: str = "", **more: object) -> dict[str, str]:
    arguments = (VIRTUAL, rules) if rules else (VIRTUAL,)
    decisions = builders.decide([virtual_server("a", *cards)], [job_with_limits("j", count, *limits, **more)],
                              policy=policy(*arguments))  # fmt: skip
    return {task: devices for task, (_, devices) in devices_by_pod(decisions, "volcano.sh/vgpu-ids-new").items()}


HALF = {"vgpu-number": "1", "vgpu-memory": "8000", "vgpu-cores": "50"}


@pytest.mark.parametrize(
    ("limits", "cards", "fitting"),
    [
        (HALF, [card("x"), card("y")], 4),
        ({"vgpu-number": "1", "vgpu-memory": "1000"}, [card("x", count=3)], 3),
        ({"vgpu-number": "1", "vgpu-memory": "1000", "vgpu-cores": "40"}, [card("x")], 2),
        ({"vgpu-number": "1", "vgpu-memory-percentage": "50"}, [card("x")], 2),
        ({"vgpu-number": "1"}, [card("x"), card("y")], 2),
        ({"vgpu-number": "2", "vgpu-memory": "8000"}, [card("x"), card("y")], 2),
        ({"vgpu-number": "1", "vgpu-memory": "10", "vgpu-cores": "100"}, [card("x")], 1),
        ({"vgpu-number": "1", "vgpu-memory": "10"}, [card("x", health="false")], 0),
        ({"vgpu-number": "1", "vgpu-memory": "10"}, ["nonsense"], 0),
    ],
)
def test_virtual_card_limits_memory_cores_and_sharers(limits: dict[str, str], cards: list[str], fitting: int) -> None:
    assert len(virtual(6, limits, cards=cards)) == fitting


def test_card_without_free_cores_refuses_pods_without_core_limit() -> None:
    full = {"vgpu-number": "1", "vgpu-memory": "10", "vgpu-cores": "100"}
    jobs = [job_with_limits("j", 1, full), job_with_limits("k", 1, {"vgpu-number": "1", "vgpu-memory": "10"})]
    decisions = builders.decide([virtual_server("a", card("x"))], jobs, policy=policy(VIRTUAL))
    assert [bind.pod for bind in decisions.binds] == ["j-0"]


@pytest.mark.parametrize(
    ("rules", "chosen"),
    [
        ("", ["y,V100,4000,0", "y,V100,4000,0"]),
        ("deviceshare.SchedulePolicy: binpack", ["x,V100,4000,0", "x,V100,4000,0"]),
        ("deviceshare.SchedulePolicy: spread", ["x,V100,4000,0", "y,V100,4000,0"]),
    ],
)
def test_schedule_policy_selects_the_card(rules: str, chosen: list[str]) -> None:
    limits = {"vgpu-number": "1", "vgpu-memory": "4000"}
    assert list(virtual(2, limits, cards=[card("x"), card("y")], rules=rules).values()) == chosen


@pytest.mark.parametrize(
    ("scheduling", "nodes"),
    [("binpack", ["a", "a"]), ("spread", ["a", "b"])],
)
def test_schedule_policy_scores_the_nodes(scheduling: str, nodes: list[str]) -> None:
    rules = policy(VIRTUAL, f"deviceshare.SchedulePolicy: {scheduling}", "deviceshare.ScheduleWeight: 10")
    two = [virtual_server("a", card("x")), virtual_server("b", card("y"))]
    limits = {"vgpu-number": "1", "vgpu-memory": "4000"}
    decisions = builders.decide(two, [job_with_limits("j", 2, limits)], policy=rules)
    assert [bind.node for bind in decisions.binds] == nodes


def test_each_container_gets_a_share_and_card_selectors_apply() -> None:
    notes = {"nvidia.com/use-gpuuuid": "x,z", "nvidia.com/nouse-gputype": "a100"}
    cards = [card("x"), card("y"), card("z").replace("V100", "A100-40G")]
    assert virtual(1, HALF, HALF, cards=cards, annotations=notes) == {"j-0": "x,V100,8000,50;x,V100,8000,50"}
    assert virtual(2, HALF, HALF, cards=cards, annotations=notes).keys() == {"j-0"}


def test_virtual_shares_are_read_back() -> None:
    note = {"volcano.sh/vgpu-ids-new": "y,V100,16000,0"}
    old = job_with_limits("old", 1, {"vgpu-number": "1"}, status=PodStatus.RUNNING, node="a", annotations=note)
    node = virtual_server("a", card("x"), card("y"))
    decisions = builders.decide([node], [old, job_with_limits("new", 2, {"vgpu-number": "1"})], policy=policy(VIRTUAL))
    assert devices_by_pod(decisions, "volcano.sh/vgpu-ids-new") == {"new-0": ("a", "x,V100,16000,0")}


# MIG: cards partitioned by the hardware.

GEOMETRIES = """deviceshare.knownMigGeometries: [{models: [A100-40GB, A30], allowedGeometries: [
    {group: g1, geometries: [{name: 1g.5gb, memory: 5120, count: 7}]},
    {group: g2, geometries: [{name: 2g.10gb, memory: 10240, count: 3}, {name: 1g.5gb, memory: 5120, count: 1}]},
    {group: g3, geometries: [{name: 3g.20gb, memory: 20480, count: 2}]},
    {group: g4, geometries: [{name: 7g.40gb, memory: 40960, count: 1}]}]}]"""
CUT_UP = "x,7,40960,NVIDIA-A100-40GB,true,mig"


def mig_instances_of(*memories: str, cards: str = CUT_UP, rules: str = GEOMETRIES, **more: object) -> list[str]:
    """The MIG instance of each of several pods, placed in this order; empty if it waits."""
    jobs = [
        job_with_limits(f"j{at}", 1, {"vgpu-number": "1", "vgpu-memory": one}, **more)
        for at, one in enumerate(memories)
    ]
    decisions = builders.decide([virtual_server("a", *cards.split(":"))], jobs, policy=policy(VIRTUAL, rules))
    found = devices_by_pod(decisions, "volcano.sh/vgpu-ids-new")
    return [found.get(f"j{at}-0", ("", ""))[1].replace(",NVIDIA-A100-40GB,", " ") for at in range(len(memories))]


@pytest.mark.parametrize(
    ("memories", "expected"),
    [
        (["5000", "5120"], ["x[g1-0] 5120,0", "x[g1-1] 5120,0"]),
        (["8000", "4000", "1000"], ["x[g2-0] 10240,0", "x[g2-3] 5120,0", "x[g2-1] 10240,0"]),
        (["5000", "8000"], ["x[g1-0] 5120,0", ""]),
        (["20000", "20000", "10"], ["x[g3-0] 20480,0", "x[g3-1] 20480,0", ""]),
        (["40960"], ["x[g4-0] 40960,0"]),
        (["0"], ["x[g4-0] 40960,0"]),
        (["41000"], [""]),
    ],
)
def test_smallest_sufficient_mig_instance_is_allocated(memories: list[str], expected: list[str]) -> None:
    assert mig_instances_of(*memories) == expected


def test_card_keeps_its_mig_geometry_while_pods_use_it() -> None:
    both = f"{CUT_UP}:{CUT_UP.replace('x,', 'y,', 1)}"
    assert mig_instances_of("5000", "8000", "5000", cards=both) == [
        "y[g1-0] 5120,0",
        "x[g2-0] 10240,0",
        "y[g1-1] 5120,0",
    ]


@pytest.mark.parametrize(
    "rules",
    [
        "deviceshare.knownMigGeometries: []",
        "deviceshare.knownMigGeometries: A100",
        "deviceshare.knownMigGeometries: [{models: [H100], allowedGeometries: [{group: g, geometries: []}]}]",
        "deviceshare.knownMigGeometries: [{models: [A100], allowedGeometries: [{group: g, geometries: [{}]}]}]",
    ],
)
def test_card_without_a_known_geometry_is_not_allocated(rules: str) -> None:
    assert mig_instances_of("10", rules=rules) == [""]


def test_mig_instances_are_read_back() -> None:
    note = {"volcano.sh/vgpu-ids-new": "x[g2-0],NVIDIA-A100-40GB,10240,0"}
    limits = {"vgpu-number": "1", "vgpu-memory": "9000"}
    old = job_with_limits("old", 1, limits, status=PodStatus.RUNNING, node="a", annotations=note)
    decisions = builders.decide([virtual_server("a", CUT_UP)], [old, job_with_limits("new", 3, limits)],
                              policy=policy(VIRTUAL, GEOMETRIES))  # fmt: skip
    names = {task: devices.partition(",")[0] for task, (_, devices) in devices_by_pod(decisions, *note).items()}
    assert names == {"new-0": "x[g2-1]", "new-1": "x[g2-2]"}


def test_released_mig_instances_leave_the_card_whole() -> None:
    big = replace(
        job_with_limits("a-big", 8, {"vgpu-number": "1", "vgpu-memory": "5000"}), min_available=8, min_task_member={}
    )
    whole = job_with_limits("b", 1, {"vgpu-number": "1"})
    decisions = builders.decide([virtual_server("a", CUT_UP)], [big, whole], policy=policy(VIRTUAL, GEOMETRIES))
    assert [bind.pod for bind in decisions.binds] == ["b-0"]


def test_each_container_gets_a_mig_instance() -> None:
    limits = {"vgpu-number": "1", "vgpu-memory": "20000"}
    rules = policy(VIRTUAL, GEOMETRIES)
    two = builders.decide([virtual_server("a", CUT_UP)], [job_with_limits("j", 1, limits, limits)], policy=rules)
    ((_, devices),) = devices_by_pod(two, "volcano.sh/vgpu-ids-new").values()
    assert [one.partition(",")[0] for one in devices.split(";")] == ["x[g3-0]", "x[g3-1]"]
    assert not builders.decide(
        [virtual_server("a", CUT_UP)], [job_with_limits("j", 1, limits, limits, limits)], policy=rules
    ).binds


# Exclusive rules.

RULES = "deviceshare.GPUExclusiveRules: [{role: train, team: a}, {app: serve}, {gpus: 1}]"


@pytest.mark.parametrize(
    ("first", "second", "cards"),
    [
        ({"role": "train", "team": "a"}, {"role": "train", "team": "a"}, ["x", "y"]),
        ({"role": "train", "team": "a"}, {"role": "train", "team": "b"}, ["x", "x"]),
        ({"role": "train", "team": "a"}, {"app": "serve"}, ["x", "x"]),
        ({"role": "train", "team": "a", "app": "serve"}, {"app": "serve"}, ["x", "y"]),
        ({"gpus": "1"}, {"gpus": "1"}, ["x", "x"]),
        ({}, {}, ["x", "x"]),
    ],
)
def test_pods_matched_by_one_exclusive_rule_do_not_share_a_card(
    first: dict[str, str], second: dict[str, str], cards: list[str]
) -> None:
    limits = {"vgpu-number": "1", "vgpu-memory": "1000"}
    jobs = [job_with_limits("j", 1, limits, labels=first), job_with_limits("k", 1, limits, labels=second)]
    rules = policy(VIRTUAL, RULES, "deviceshare.SchedulePolicy: binpack")
    decisions = builders.decide([virtual_server("a", card("x"), card("y"))], jobs, policy=rules)
    annotations = devices_by_pod(decisions, "volcano.sh/vgpu-ids-new")
    assert [annotations[task][1].partition(",")[0] for task in ("j-0", "k-0")] == cards


def test_exclusive_rule_allows_one_pod_per_card() -> None:
    limits, labels = {"vgpu-number": "1", "vgpu-memory": "1000"}, {"app": "serve"}
    note = {"volcano.sh/vgpu-ids-new": "x,V100,1000,0"}
    old = job_with_limits("old", 1, limits, labels=labels, status=PodStatus.RUNNING, node="a", annotations=note)
    node = virtual_server("a", card("x"), card("y"))
    decisions = builders.decide(
        [node], [old, job_with_limits("new", 3, limits, labels=labels)], policy=policy(VIRTUAL, RULES)
    )
    assert devices_by_pod(decisions, "volcano.sh/vgpu-ids-new") == {"new-0": ("a", "y,V100,1000,0")}


def test_released_card_is_free_for_the_same_exclusive_rule() -> None:
    limits, labels = {"vgpu-number": "1", "vgpu-memory": "1000"}, {"app": "serve"}
    big = replace(job_with_limits("a-big", 2, limits, labels=labels), min_available=2, min_task_member={"w": 2})
    small = job_with_limits("b", 1, limits, labels=labels)
    decisions = builders.decide([virtual_server("a", card("x"))], [big, small], policy=policy(VIRTUAL, RULES))
    assert devices_by_pod(decisions, "volcano.sh/vgpu-ids-new") == {"b-0": ("a", "x,V100,1000,0")}


# Links.

PAIRS = [[0, 1, 9, 1], [1, 0, 1, 9], [9, 1, 0, 1], [1, 9, 1, 0]]
"""The best links are between cards 0 and 2, and between cards 1 and 3."""


def linked(name: str, matrix: object = PAIRS) -> NodeSpec:
    return server(name, annotations={"hekla.io/gpu-links": json.dumps(matrix)})


def test_best_linked_cards_are_allocated_together() -> None:
    decisions = builders.decide([linked("a")], [job_with_limits("j", 2, {"gpu-number": "2"})], policy=policy(NUMBER))
    assert devices_by_pod(decisions) == {"j-0": ("a", "0,2"), "j-1": ("a", "1,3")}


def test_single_card_leaves_the_others_best_linked() -> None:
    chain = [[0, 5, 0, 0], [5, 0, 5, 0], [0, 5, 0, 5], [0, 0, 5, 0]]
    decisions = builders.decide(
        [linked("a", chain)], [job_with_limits("j", 1, {"gpu-number": "1"})], policy=policy(NUMBER)
    )
    assert devices_by_pod(decisions) == {"j-0": ("a", "0")}
    middle = [[0, 5, 5, 5], [5, 0, 5, 5], [5, 5, 0, 0], [5, 5, 0, 0]]
    decisions = builders.decide(
        [linked("a", middle)], [job_with_limits("j", 1, {"gpu-number": "1"})], policy=policy(NUMBER)
    )
    assert devices_by_pod(decisions) == {"j-0": ("a", "2")}


def test_node_with_better_links_is_preferred() -> None:
    worse = [[0 if i == j else 1 for j in range(4)] for i in range(4)]
    decisions = builders.decide([linked("a", worse), linked("b")], [job_with_limits("j", 3, {"gpu-number": "2"})],
                              policy=policy(NUMBER))  # fmt: skip
    assert [bind.node for bind in decisions.binds] == ["b", "b", "a"]


@pytest.mark.parametrize("matrix", ["no matrix", [[1, 2]], [[0, 1], [1, 0]], 7, [[0, None], [1, 0]]])
def test_invalid_link_matrix_is_ignored(matrix: object) -> None:
    decisions = builders.decide(
        [linked("a", matrix)], [job_with_limits("j", 1, {"gpu-number": "2"})], policy=policy(NUMBER)
    )
    assert devices_by_pod(decisions) == {"j-0": ("a", "0,1")}


def test_the_weakest_link_counts_more_than_the_sum() -> None:
    matrix = parse_links(json.dumps([[0, 9, 9, 4], [9, 0, 1, 4], [9, 1, 0, 4], [4, 4, 4, 0]]))
    assert links.best_set(matrix, (0, 1, 2, 3), 3) == (0, 1, 3)


# Compatibility with Volcano.


def test_volcano_ignores_cards_of_pods_without_recorded_index() -> None:
    old = job_with_limits("old", 1, {"gpu-memory": "8"}, status=PodStatus.RUNNING, node="a")
    state = builders.state([server("a")], [old, job_with_limits("new", 1, {"gpu-memory": "1"})])
    ours, volcanos = (cycle(state, policy(SHARING, compatibility=c), 0.0) for c in ("hekla", "volcano"))
    assert (devices_by_pod(ours)["new-0"], devices_by_pod(volcanos)["new-0"]) == (("a", "1"), ("a", "0"))


def test_without_a_mode_no_card_is_recorded() -> None:
    state: ClusterState = builders.state([server("a")], [job_with_limits("j", 1, {"gpu-memory": "9"})])
    assert devices_by_pod(cycle(state, policy("deviceshare.ScheduleWeight: 1"), 0.0)) == {"j-0": ("a", "")}
