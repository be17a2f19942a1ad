"""Cards (accelerators) of nodes, and which of them pods hold.

A card belongs to the resource that counts it: `nvidia.com/gpu`, `huawei.com/Ascend910`. Cards whose memory is shared
belong to Volcano's `volcano.sh/gpu-number`; a pod requests a part of one as `volcano.sh/gpu-memory`, in MiB.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from hekla.domain.resources import Resources

NVIDIA = "nvidia.com/gpu"
NUMBER, MEMORY = "volcano.sh/gpu-number", "volcano.sh/gpu-memory"
VIRTUAL = "volcano.sh/vgpu-number"
INDEX, TIME, IDS = "volcano.sh/gpu-index", "volcano.sh/predicate-time", "volcano.sh/vgpu-ids-new"
"""Annotations by which Volcano gives cards to a pod (`volcano-spec` §5.7)."""
_UNHEALTHY = "volcano.sh/gpu-unhealthy-ids"
MAX_CARDS = 64
_MOST_MIB = 2**40
_UNIT = 1000
"""Amounts of devices are in thousandths."""
_NO_CARDS = frozenset({"cpu", "memory", "pods", "ephemeral-storage"})


@dataclass(frozen=True, slots=True)
class _CardFacts:
    """What a card is. `index`: among the cards of its resource. `id`: the driver's name for it; empty if unknown.

    `memory_mib`: 0 if unknown.
    """

    resource: str
    index: int
    id: str = ""
    model: str = ""
    memory_mib: int = 0

    @property
    def key(self) -> str:
        """Equal for the same card of a node, also if it has been counted by another resource since."""
        return self.id.partition("[")[0] or f"{self.resource} {self.index}"

    def as_data(self) -> dict[str, Any]:
        """For a row."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class NodeCard(_CardFacts):
    """A card of a node."""

    is_healthy: bool = True


@dataclass(frozen=True, slots=True)
class HeldCard(_CardFacts):
    """A card of a pod. `part_mib`: how much of its memory the pod holds; 0: the whole card.

    A MIG instance has the id of its card, with geometry and position in brackets.
    """

    part_mib: int = 0


def held(card: NodeCard, part: int = 0) -> HeldCard:
    """This card in the hands of a pod."""
    return HeldCard(card.resource, card.index, card.id, card.model, card.memory_mib, part)


def mebibytes(amount: float) -> int:
    """An amount that others reported, as a whole number that a row takes; 0 if it is no number."""
    return int(min(amount, _MOST_MIB)) if amount > 0 else 0


def may_request_cards(request: Resources) -> bool:
    """Whether the request has a resource that cards could count. Cheap: it is asked of every pod that is bound."""
    return not request.keys() <= _NO_CARDS


def amounts(cards: Iterable[NodeCard]) -> dict[str, float]:
    """What a node with these cards has to allocate, in internal units.

    Cards with shared memory all count, as in Volcano; of other resources only healthy ones.
    """
    cards = list(cards)
    found = Counter(card.resource for card in cards if card.is_healthy or card.resource == NUMBER)
    shared = sum(card.memory_mib for card in cards if card.resource == NUMBER)
    return {name: float(count * _UNIT) for name, count in found.items()} | (
        {MEMORY: float(shared * _UNIT)} if shared else {}
    )


def largest_part(allocatable: Resources) -> int:
    """How many MiB a pod can have of one card of a node that shares the memory of its cards; 0 if it does not."""
    count = int(allocatable.amount(NUMBER) // _UNIT)
    return int(allocatable.amount(MEMORY) // _UNIT) // count if count else 0


def annotations(cards: Iterable[NodeCard]) -> dict[str, str]:
    """What Volcano's device plugin writes to a node with these cards."""
    broken = [str(card.index) for card in cards if card.resource == NUMBER and not card.is_healthy]
    return {_UNHEALTHY: ",".join(broken)} if broken else {}


def decided(annotations: Mapping[str, str], cards: Sequence[NodeCard], request: Resources) -> list[HeldCard]:
    """The cards that the scheduler named in a pod's annotations. `cards`: those that the node reports, if it does."""
    if IDS in annotations:
        named = (_virtual(cards, text) for text in annotations[IDS].replace(";", ":").split(":"))
        return [one for one in named if one is not None][:MAX_CARDS]
    known = {card.index: card for card in cards if card.resource == NUMBER}
    part = int(request.amount(MEMORY) // _UNIT)
    numbers = [int(text) for text in annotations.get(INDEX, "").split(",") if text.isdecimal()][:MAX_CARDS]
    return [held(known.get(number, NodeCard(NUMBER, number)), part) for number in numbers]


def _virtual(cards: Sequence[NodeCard], text: str) -> HeldCard | None:
    """A part of a card as `id,model,memory,cores`; None if it is none, because ids come from the cluster."""
    name, model, memory = [*text.split(","), "", "", ""][:3]
    try:
        part = mebibytes(float(memory))
    except ValueError:
        return None
    card = next((card for card in cards if card.id == name.partition("[")[0]), NodeCard(VIRTUAL, 0, model=model))
    return replace(held(card, part), id=name)


@dataclass
class CardUse:
    """The cards of one node, and how much of each is in use."""

    cards: Sequence[NodeCard]
    _memory: Counter[str] = field(default_factory=Counter)
    _holders: Counter[str] = field(default_factory=Counter)

    def add(self, cards: Iterable[HeldCard]) -> None:
        """A pod holds these."""
        for one in cards:
            self._holders[one.key] += 1
            self._memory[one.key] += one.part_mib or max(one.memory_mib, 1)

    def choose(self, request: Resources, *, has_shared: bool = False) -> list[HeldCard]:
        """Cards for this request; `has_shared`: those with shared memory are chosen already.

        Healthy ones before others, free ones before shared ones, then the lowest.
        Never fails: if the cluster's configuration promises more cards than there are, pods share the least used ones.
        """
        found = []
        for resource in dict.fromkeys(card.resource for card in self.cards):
            if has_shared and resource == NUMBER:
                continue
            count = int(request.amount(resource) // _UNIT)
            found += [held(card) for card in sorted(self._of(resource), key=self._rank)[:count]]
        part = 0 if has_shared else int(request.amount(MEMORY) // _UNIT)
        shared = self._of(NUMBER) if part else []
        if shared:
            roomy = [card for card in shared if card.is_healthy and self._free(card) >= part]
            found.append(held(roomy[0] if roomy else min(shared, key=self._rank), part))
        return found

    def _of(self, resource: str) -> list[NodeCard]:
        return [card for card in self.cards if card.resource == resource and resource != VIRTUAL]

    def _rank(self, card: NodeCard) -> tuple[bool, int, int, int]:
        return not card.is_healthy, self._holders[card.key], self._memory[card.key], card.index

    def _free(self, card: NodeCard) -> int:
        return card.memory_mib - self._memory[card.key]
