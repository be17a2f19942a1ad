"""What one may rely on where pods are given cards of a node."""

import json
from dataclasses import replace

import pytest
from tests.engine import worlds

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


def pods(name: str, count: int, *limits: dict[str, str], **more: object) -> PodGroupSpec:
    """A job of equal pods, each of containers with these limits of cards."""
    parsed = tuple(Resources.parse({f"volcano.sh/{k}": v for k, v in one.items()}) for one in limits)
    request = sum(parsed, Resources.parse({"cpu": "1"}))
    tasks = tuple(
        PodSpec(f"{name}-{i}", f"{name}-w-{i}", "w", request, device_limits=parsed, **more) for i in range(count)
    )
    return replace(worlds.job(name, minimum=1), pods=tasks, min_resources=None)


def given(decisions: Decisions, note: str = "volcano.sh/gpu-index") -> dict[str, tuple[str, str]]:
    """The node and the cards that each pod was given."""
    return {bind.pod: (bind.node, bind.annotations.get(note, "")) for bind in decisions.binds}


def test_a_pod_gets_memory_of_one_card_and_is_told_which() -> None:
    decisions = worlds.decide([server("a")], [pods("j", 3, {"gpu-memory": "5"})], policy=policy(SHARING))
    assert given(decisions) == {"j-0": ("a", "0"), "j-1": ("a", "1"), "j-2": ("a", "2")}


def test_memory_that_is_free_on_no_single_card_does_not_serve() -> None:
    jobs = [pods("j", 5, {"gpu-memory": "5"})]
    assert len(worlds.decide([server("a")], jobs, policy=policy(SHARING)).binds) == 4
    assert not worlds.decide([server("a")], [pods("j", 1, {"gpu-memory": "9"})], policy=policy(SHARING)).binds


def test_whole_cards_are_those_without_any_pod_and_in_health() -> None:
    node = server("a", annotations={"volcano.sh/gpu-unhealthy-ids": "0"})
    decisions = worlds.decide([node], [pods("j", 3, {"gpu-number": "2"})], policy=policy(NUMBER))
    assert given(decisions) == {"j-0": ("a", "1,2")}


@pytest.mark.parametrize(("note", "expected"), [({"volcano.sh/gpu-index": "0,1"}, "2,3"), ({}, "2,3")])
def test_pods_that_run_keep_their_cards(note: dict[str, str], expected: str) -> None:
    old = pods("old", 1, {"gpu-number": "2"}, status=PodStatus.RUNNING, node="a", annotations=note)
    decisions = worlds.decide([server("a")], [old, pods("new", 1, {"gpu-number": "2"})], policy=policy(NUMBER))
    assert given(decisions) == {"new-0": ("a", expected)}


def test_cards_are_told_again_from_one_cycle_to_the_next() -> None:
    jobs, rules = [pods("j", 2, {"gpu-number": "1"})], policy(NUMBER)
    first = worlds.decide([server("a")], jobs, policy=rules)
    told = {bind.pod: bind.annotations for bind in first.binds}
    ran = tuple(replace(t, status=PodStatus.RUNNING, node="a", annotations=told[t.uid]) for t in jobs[0].pods)
    rest = replace(jobs[0], pods=ran[1:])
    again = worlds.decide([server("a")], [rest, pods("k", 2, {"gpu-number": "1"})], policy=rules)
    assert given(again) == {"k-0": ("a", "0"), "k-1": ("a", "2")}


def test_a_gang_that_does_not_fit_leaves_no_card_taken() -> None:
    big = replace(pods("a-big", 3, {"gpu-number": "2"}), min_available=3, min_task_member={"w": 3})
    decisions = worlds.decide([server("a")], [big, pods("b", 2, {"gpu-number": "2"})], policy=policy(NUMBER))
    assert given(decisions) == {"b-0": ("a", "0,1"), "b-1": ("a", "2,3")}


def test_who_preempts_is_promised_the_cards_of_its_victims() -> None:
    old = pods("old", 1, {"gpu-memory": "8"}, status=PodStatus.RUNNING, node="a")
    new = replace(pods("new", 1, {"gpu-memory": "8"}, preemptable=False), priority=10)
    rules = policy(SHARING, actions="allocate, preempt")
    spread = replace(old, min_available=0, min_task_member={})
    decisions = worlds.decide([server("a", cards=1, memory=8)], [spread, new], policy=rules)
    assert [eviction.pod for eviction in decisions.evictions] == ["old-0"]
    assert decisions.pipelined == {"new-0": "a"}


# Virtual cards.

CARD = "{},{},{},V100,{},hami-core"


def card(uuid: str, count: int = 4, memory: int = 16000, health: str = "true") -> str:
    return CARD.format(uuid, count, memory, health)


def virtual(count: int, *limits: dict[str, str], cards: list[str], rules: str = "", **more: object) -> dict[str, str]:
    arguments = (VIRTUAL, rules) if rules else (VIRTUAL,)
    decisions = worlds.decide([virtual_server("a", *cards)], [pods("j", count, *limits, **more)],
                              policy=policy(*arguments))  # fmt: skip
    return {task: devices for task, (_, devices) in given(decisions, "volcano.sh/vgpu-ids-new").items()}


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
def test_a_virtual_card_serves_while_memory_cores_and_sharers_allow(
    limits: dict[str, str], cards: list[str], fitting: int
) -> None:
    assert len(virtual(6, limits, cards=cards)) == fitting


def test_a_card_whose_cores_are_all_given_takes_nobody_who_names_none() -> None:
    full = {"vgpu-number": "1", "vgpu-memory": "10", "vgpu-cores": "100"}
    jobs = [pods("j", 1, full), pods("k", 1, {"vgpu-number": "1", "vgpu-memory": "10"})]
    decisions = worlds.decide([virtual_server("a", card("x"))], jobs, policy=policy(VIRTUAL))
    assert [bind.pod for bind in decisions.binds] == ["j-0"]


@pytest.mark.parametrize(
    ("rules", "chosen"),
    [
        ("", ["y,V100,4000,0", "y,V100,4000,0"]),
        ("deviceshare.SchedulePolicy: binpack", ["x,V100,4000,0", "x,V100,4000,0"]),
        ("deviceshare.SchedulePolicy: spread", ["x,V100,4000,0", "y,V100,4000,0"]),
    ],
)
def test_the_policy_says_which_card_is_taken(rules: str, chosen: list[str]) -> None:
    limits = {"vgpu-number": "1", "vgpu-memory": "4000"}
    assert list(virtual(2, limits, cards=[card("x"), card("y")], rules=rules).values()) == chosen


@pytest.mark.parametrize(
    ("scheduling", "nodes"),
    [("binpack", ["a", "a"]), ("spread", ["a", "b"])],
)
def test_the_policy_says_which_node_is_liked(scheduling: str, nodes: list[str]) -> None:
    rules = policy(VIRTUAL, f"deviceshare.SchedulePolicy: {scheduling}", "deviceshare.ScheduleWeight: 10")
    two = [virtual_server("a", card("x")), virtual_server("b", card("y"))]
    limits = {"vgpu-number": "1", "vgpu-memory": "4000"}
    decisions = worlds.decide(two, [pods("j", 2, limits)], policy=rules)
    assert [bind.node for bind in decisions.binds] == nodes


def test_each_container_gets_its_own_part_and_wishes_are_met() -> None:
    notes = {"nvidia.com/use-gpuuuid": "x,z", "nvidia.com/nouse-gputype": "a100"}
    cards = [card("x"), card("y"), card("z").replace("V100", "A100-40G")]
    assert virtual(1, HALF, HALF, cards=cards, annotations=notes) == {"j-0": "x,V100,8000,50;x,V100,8000,50"}
    assert virtual(2, HALF, HALF, cards=cards, annotations=notes).keys() == {"j-0"}


def test_virtual_parts_are_read_back() -> None:
    note = {"volcano.sh/vgpu-ids-new": "y,V100,16000,0"}
    old = pods("old", 1, {"vgpu-number": "1"}, status=PodStatus.RUNNING, node="a", annotations=note)
    node = virtual_server("a", card("x"), card("y"))
    decisions = worlds.decide([node], [old, pods("new", 2, {"vgpu-number": "1"})], policy=policy(VIRTUAL))
    assert given(decisions, "volcano.sh/vgpu-ids-new") == {"new-0": ("a", "x,V100,16000,0")}


# Cards that the hardware cuts up.

GEOMETRIES = """deviceshare.knownMigGeometries: [{models: [A100-40GB, A30], allowedGeometries: [
    {group: g1, geometries: [{name: 1g.5gb, memory: 5120, count: 7}]},
    {group: g2, geometries: [{name: 2g.10gb, memory: 10240, count: 3}, {name: 1g.5gb, memory: 5120, count: 1}]},
    {group: g3, geometries: [{name: 3g.20gb, memory: 20480, count: 2}]},
    {group: g4, geometries: [{name: 7g.40gb, memory: 40960, count: 1}]}]}]"""
CUT_UP = "x,7,40960,NVIDIA-A100-40GB,true,mig"


def pieces(*memories: str, cards: str = CUT_UP, rules: str = GEOMETRIES, **more: object) -> list[str]:
    """What pods that come one after the other are given of the cards; nothing: they wait."""
    jobs = [pods(f"j{at}", 1, {"vgpu-number": "1", "vgpu-memory": one}, **more) for at, one in enumerate(memories)]
    found = given(worlds.decide([virtual_server("a", *cards.split(":"))], jobs, policy=policy(VIRTUAL, rules)),
                  "volcano.sh/vgpu-ids-new")  # fmt: skip
    return [found.get(f"j{at}-0", ("", ""))[1].replace(",NVIDIA-A100-40GB,", " ") for at in range(len(memories))]


@pytest.mark.parametrize(
    ("memories", "given_of_it"),
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
def test_the_smallest_piece_that_is_large_enough_is_given(memories: list[str], given_of_it: list[str]) -> None:
    assert pieces(*memories) == given_of_it


def test_a_card_is_only_cut_up_as_its_pods_allow() -> None:
    both = f"{CUT_UP}:{CUT_UP.replace('x,', 'y,', 1)}"
    assert pieces("5000", "8000", "5000", cards=both) == ["y[g1-0] 5120,0", "x[g2-0] 10240,0", "y[g1-1] 5120,0"]


@pytest.mark.parametrize(
    "rules",
    [
        "deviceshare.knownMigGeometries: []",
        "deviceshare.knownMigGeometries: A100",
        "deviceshare.knownMigGeometries: [{models: [H100], allowedGeometries: [{group: g, geometries: []}]}]",
        "deviceshare.knownMigGeometries: [{models: [A100], allowedGeometries: [{group: g, geometries: [{}]}]}]",
    ],
)
def test_who_may_be_cut_up_in_no_known_way_is_not_given(rules: str) -> None:
    assert pieces("10", rules=rules) == [""]


def test_pieces_are_read_back() -> None:
    note = {"volcano.sh/vgpu-ids-new": "x[g2-0],NVIDIA-A100-40GB,10240,0"}
    limits = {"vgpu-number": "1", "vgpu-memory": "9000"}
    old = pods("old", 1, limits, status=PodStatus.RUNNING, node="a", annotations=note)
    decisions = worlds.decide([virtual_server("a", CUT_UP)], [old, pods("new", 3, limits)],
                              policy=policy(VIRTUAL, GEOMETRIES))  # fmt: skip
    names = {task: devices.partition(",")[0] for task, (_, devices) in given(decisions, *note).items()}
    assert names == {"new-0": "x[g2-1]", "new-1": "x[g2-2]"}


def test_pieces_that_are_given_back_leave_the_card_whole() -> None:
    big = replace(pods("a-big", 8, {"vgpu-number": "1", "vgpu-memory": "5000"}), min_available=8, min_task_member={})
    whole = pods("b", 1, {"vgpu-number": "1"})
    decisions = worlds.decide([virtual_server("a", CUT_UP)], [big, whole], policy=policy(VIRTUAL, GEOMETRIES))
    assert [bind.pod for bind in decisions.binds] == ["b-0"]


def test_containers_of_a_pod_get_pieces_of_their_own() -> None:
    limits = {"vgpu-number": "1", "vgpu-memory": "20000"}
    rules = policy(VIRTUAL, GEOMETRIES)
    two = worlds.decide([virtual_server("a", CUT_UP)], [pods("j", 1, limits, limits)], policy=rules)
    ((_, devices),) = given(two, "volcano.sh/vgpu-ids-new").values()
    assert [one.partition(",")[0] for one in devices.split(";")] == ["x[g3-0]", "x[g3-1]"]
    assert not worlds.decide([virtual_server("a", CUT_UP)], [pods("j", 1, limits, limits, limits)], policy=rules).binds


# Who does not share.

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
def test_pods_of_one_rule_do_not_share_a_card(first: dict[str, str], second: dict[str, str], cards: list[str]) -> None:
    limits = {"vgpu-number": "1", "vgpu-memory": "1000"}
    jobs = [pods("j", 1, limits, labels=first), pods("k", 1, limits, labels=second)]
    rules = policy(VIRTUAL, RULES, "deviceshare.SchedulePolicy: binpack")
    decisions = worlds.decide([virtual_server("a", card("x"), card("y"))], jobs, policy=rules)
    told = given(decisions, "volcano.sh/vgpu-ids-new")
    assert [told[task][1].partition(",")[0] for task in ("j-0", "k-0")] == cards


def test_of_one_rule_there_run_as_many_as_there_are_cards() -> None:
    limits, labels = {"vgpu-number": "1", "vgpu-memory": "1000"}, {"app": "serve"}
    note = {"volcano.sh/vgpu-ids-new": "x,V100,1000,0"}
    old = pods("old", 1, limits, labels=labels, status=PodStatus.RUNNING, node="a", annotations=note)
    node = virtual_server("a", card("x"), card("y"))
    decisions = worlds.decide([node], [old, pods("new", 3, limits, labels=labels)], policy=policy(VIRTUAL, RULES))
    assert given(decisions, "volcano.sh/vgpu-ids-new") == {"new-0": ("a", "y,V100,1000,0")}


def test_a_card_that_is_given_back_may_be_given_to_the_same_rule() -> None:
    limits, labels = {"vgpu-number": "1", "vgpu-memory": "1000"}, {"app": "serve"}
    big = replace(pods("a-big", 2, limits, labels=labels), min_available=2, min_task_member={"w": 2})
    small = pods("b", 1, limits, labels=labels)
    decisions = worlds.decide([virtual_server("a", card("x"))], [big, small], policy=policy(VIRTUAL, RULES))
    assert given(decisions, "volcano.sh/vgpu-ids-new") == {"b-0": ("a", "x,V100,1000,0")}


# Links.

PAIRS = [[0, 1, 9, 1], [1, 0, 1, 9], [9, 1, 0, 1], [1, 9, 1, 0]]
"""Cards 0 and 2, and cards 1 and 3, are linked best."""


def linked(name: str, matrix: object = PAIRS) -> NodeSpec:
    return server(name, annotations={"hekla.io/gpu-links": json.dumps(matrix)})


def test_cards_that_are_linked_best_go_together() -> None:
    decisions = worlds.decide([linked("a")], [pods("j", 2, {"gpu-number": "2"})], policy=policy(NUMBER))
    assert given(decisions) == {"j-0": ("a", "0,2"), "j-1": ("a", "1,3")}


def test_one_card_is_taken_where_the_rest_stays_linked() -> None:
    chain = [[0, 5, 0, 0], [5, 0, 5, 0], [0, 5, 0, 5], [0, 0, 5, 0]]
    decisions = worlds.decide([linked("a", chain)], [pods("j", 1, {"gpu-number": "1"})], policy=policy(NUMBER))
    assert given(decisions) == {"j-0": ("a", "0")}
    middle = [[0, 5, 5, 5], [5, 0, 5, 5], [5, 5, 0, 0], [5, 5, 0, 0]]
    decisions = worlds.decide([linked("a", middle)], [pods("j", 1, {"gpu-number": "1"})], policy=policy(NUMBER))
    assert given(decisions) == {"j-0": ("a", "2")}


def test_a_server_that_gives_better_links_is_liked() -> None:
    worse = [[0 if i == j else 1 for j in range(4)] for i in range(4)]
    decisions = worlds.decide([linked("a", worse), linked("b")], [pods("j", 3, {"gpu-number": "2"})],
                              policy=policy(NUMBER))  # fmt: skip
    assert [bind.node for bind in decisions.binds] == ["b", "b", "a"]


@pytest.mark.parametrize("matrix", ["no matrix", [[1, 2]], [[0, 1], [1, 0]], 7, [[0, None], [1, 0]]])
def test_links_that_make_no_sense_are_as_none(matrix: object) -> None:
    decisions = worlds.decide([linked("a", matrix)], [pods("j", 1, {"gpu-number": "2"})], policy=policy(NUMBER))
    assert given(decisions) == {"j-0": ("a", "0,1")}


def test_the_weakest_link_counts_more_than_the_sum() -> None:
    matrix = parse_links(json.dumps([[0, 9, 9, 4], [9, 0, 1, 4], [9, 1, 0, 4], [4, 4, 4, 0]]))
    assert links.best_set(matrix, (0, 1, 2, 3), 3) == (0, 1, 3)


# Where Volcano is followed.


def test_volcano_counts_no_cards_of_pods_that_do_not_say_which() -> None:
    old = pods("old", 1, {"gpu-memory": "8"}, status=PodStatus.RUNNING, node="a")
    state = worlds.state([server("a")], [old, pods("new", 1, {"gpu-memory": "1"})])
    ours, volcanos = (cycle(state, policy(SHARING, compatibility=c), 0.0) for c in ("hekla", "volcano"))
    assert (given(ours)["new-0"], given(volcanos)["new-0"]) == (("a", "1"), ("a", "0"))


def test_without_a_mode_nothing_is_said() -> None:
    state: ClusterState = worlds.state([server("a")], [pods("j", 1, {"gpu-memory": "9"})])
    assert given(cycle(state, policy("deviceshare.ScheduleWeight: 1"), 0.0)) == {"j-0": ("a", "")}
