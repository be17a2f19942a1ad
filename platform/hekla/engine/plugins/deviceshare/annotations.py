"""Writes and reads the pod annotations that name a pod's cards (`volcano-spec` §5.7)."""

from collections.abc import Mapping, Sequence

from hekla.engine.plugins.deviceshare.cards import CardSlice
from hekla.engine.plugins.deviceshare.inventory import Card
from hekla.engine.plugins.deviceshare.mig import MigInstance
from hekla.engine.plugins.deviceshare.requests import CardRequest, Mode

_INDEX, _TIME = "volcano.sh/gpu-index", "volcano.sh/predicate-time"
_IDS = "volcano.sh/vgpu-ids-new"
_NANO = 1_000_000_000


Slices = Sequence[Sequence[CardSlice]]
"""One list per container."""


def to_annotations(slices: Slices, cards: Sequence[Card], node: str, now: float, mode: Mode) -> dict[str, str]:
    """The annotations for a pod with these slices."""
    if mode is not Mode.VIRTUAL:
        index = ",".join(str(card_slice.card) for one in slices for card_slice in one)
        return {_INDEX: index, _TIME: str(int(now) * _NANO)}
    devices = ";".join(":".join(_device(card_slice, cards[card_slice.card]) for card_slice in one) for one in slices)
    return {
        _IDS: devices,
        "volcano.sh/devices-to-allocate": devices,
        "volcano.sh/vgpu-node": node,
        "volcano.sh/vgpu-time": str(int(now)),
        "volcano.sh/bind-phase": "allocating",
        "volcano.sh/bind-time": str(int(now)),
    }


def _device(card_slice: CardSlice, card: Card) -> str:
    instance = f"[{card_slice.instance.geometry}-{card_slice.instance.position}]" if card_slice.instance else ""
    return f"{card.uuid}{instance},{card.kind},{card_slice.memory:g},{card_slice.cores:g}"


def from_annotations(
    annotations: Mapping[str, str], request: CardRequest, cards: Sequence[Card], mode: Mode
) -> list[list[CardSlice]] | None:
    """The slices that a pod holds, by its annotations; None if they are missing or invalid."""
    try:
        if mode is Mode.VIRTUAL:
            return _read_devices(annotations[_IDS], cards)
        memory = request.shares[0].memory
        slices = [CardSlice(int(text), memory, 0.0) for text in annotations[_INDEX].split(",")]
    except (KeyError, ValueError, IndexError, TypeError):
        return None
    return [slices] if all(0 <= card_slice.card < len(cards) for card_slice in slices) else None


def _read_devices(text: str, cards: Sequence[Card]) -> list[list[CardSlice]]:
    at = {card.uuid: card.index for card in cards}
    devices = [[one.split(",") for one in container.split(":") if one] for container in text.split(";")]
    return [[_slice(at, *one) for one in container] for container in devices]


def _slice(at: Mapping[str, int], name: str, _kind: str, memory: str, cores: str) -> CardSlice:
    """One slice; the id of a MIG instance is that of its card, with geometry and position in brackets."""
    uuid, _, inside = name.removesuffix("]").partition("[")
    geometry, _, position = inside.rpartition("-")
    return CardSlice(at[uuid], float(memory), float(cores), MigInstance(geometry, int(position)) if inside else None)
