"""Which cards a pod gets, and how a node with cards describes itself."""

from dataclasses import replace

import pytest

from hekla.domain.cards import NUMBER, VIRTUAL, CardUse, HeldCard, NodeCard, amounts, annotations, decided, held
from hekla.domain.resources import Resources

GPU = "nvidia.com/gpu"


def gpus(count: int, resource: str = GPU, **more: object) -> list[NodeCard]:
    return [NodeCard(resource, index, memory_mib=1000, **more) for index in range(count)]


def choose(cards: list[NodeCard], in_use: list[HeldCard], **request: str) -> list[int]:
    use = CardUse(cards)
    use.add(in_use)
    names = {"gpu": GPU, "number": NUMBER, "memory": "volcano.sh/gpu-memory"}
    return [card.index for card in use.choose(Resources.parse({names[name]: text for name, text in request.items()}))]


def test_free_cards_come_before_shared_ones() -> None:
    assert choose(gpus(4), [held(gpus(4)[1])], gpu="2") == [0, 2]
    assert choose(gpus(2), [held(gpus(2)[0])], gpu="2") == [1, 0]
    assert choose(gpus(1), [], gpu="4") == [0]
    assert choose([], [], gpu="1") == []


def test_healthy_cards_come_first() -> None:
    cards = [NodeCard(GPU, 0, is_healthy=False), NodeCard(GPU, 1)]
    assert choose(cards, [], gpu="1") == [1]
    assert choose(cards, [held(cards[1])], gpu="1") == [1]


def test_part_of_a_card_needs_its_room() -> None:
    cards = gpus(2, NUMBER)
    assert choose(cards, [held(cards[0], 600)], memory="400") == [0]
    assert choose(cards, [held(cards[0], 600)], memory="401") == [1]
    assert choose(cards, [held(cards[0])], memory="1") == [1]
    assert choose(cards, [held(cards[0], 900), held(cards[1], 800)], memory="500") == [1]


def test_card_of_a_part_is_not_given_as_a_whole() -> None:
    cards = gpus(2, NUMBER)
    assert choose(cards, [held(cards[0], 1)], number="1") == [1]


def test_card_is_known_by_its_id_if_its_number_has_changed() -> None:
    before, now = NodeCard(GPU, 1, "GPU-b"), [NodeCard(GPU, 0, "GPU-b"), NodeCard(GPU, 1, "GPU-c")]
    assert choose(now, [held(before)], gpu="1") == [1]
    assert choose(now, [replace(held(before), id="GPU-b[g1-0]")], gpu="1") == [1]


def test_node_offers_healthy_cards_and_all_of_those_with_shared_memory() -> None:
    cards = [*gpus(2), NodeCard(GPU, 2, is_healthy=False)]
    assert Resources(amounts(cards)).quantities() == {GPU: "2"}
    assert annotations(cards) == {}
    shared = [*gpus(2, NUMBER), NodeCard(NUMBER, 2, is_healthy=False)]
    assert Resources(amounts(shared)).quantities() == {NUMBER: "3", "volcano.sh/gpu-memory": "2000"}
    assert annotations(shared) == {"volcano.sh/gpu-unhealthy-ids": "2"}


def test_decisions_of_the_scheduler_are_read() -> None:
    request = Resources.parse({"volcano.sh/gpu-memory": "100"})
    cards = gpus(2, NUMBER, id="x")
    assert decided({"volcano.sh/gpu-index": "1"}, cards, request) == [held(cards[1], 100)]
    assert decided({"volcano.sh/gpu-index": "5"}, [], request) == [HeldCard(NUMBER, 5, part_mib=100)]
    virtual = [NodeCard(VIRTUAL, 3, "GPU-a", "V100", 2000)]
    found = decided({"volcano.sh/vgpu-ids-new": "GPU-a[g1-0],V100,500,0:GPU-b,A100,7,0;"}, virtual, request)
    assert found == [
        HeldCard(VIRTUAL, 3, "GPU-a[g1-0]", "V100", 2000, 500),
        HeldCard(VIRTUAL, 0, "GPU-b", "A100", 0, 7),
    ]


@pytest.mark.parametrize("text", ["", ";:,", "a", "a,b", "a,b,c,d", "a;b,c,d,1", ",,,"])
def test_hostile_ids_are_left_out(text: str) -> None:
    assert decided({"volcano.sh/vgpu-ids-new": text}, [], Resources()) == []


@pytest.mark.parametrize(("memory", "expected"), [("inf", 2**40), ("nan", 0), ("-1", 0), ("1e300", 2**40)])
def test_amounts_of_others_are_bounded(memory: str, expected: int) -> None:
    (card,) = decided({"volcano.sh/vgpu-ids-new": f"a,b,{memory},0"}, [], Resources())
    assert card.part_mib == expected
