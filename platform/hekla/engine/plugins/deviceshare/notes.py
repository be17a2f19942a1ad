"""The annotations by which a pod knows its cards, written and read back (`volcano-spec` §5.7)."""

from collections.abc import Mapping, Sequence

from hekla.engine.plugins.deviceshare.asks import Ask, Mode
from hekla.engine.plugins.deviceshare.cards import Part
from hekla.engine.plugins.deviceshare.inventory import Card
from hekla.engine.plugins.deviceshare.pieces import Piece

_INDEX, _TIME = "volcano.sh/gpu-index", "volcano.sh/predicate-time"
_IDS = "volcano.sh/vgpu-ids-new"
_NANO = 1_000_000_000


Parts = Sequence[Sequence[Part]]
"""One list a container."""


def written(parts: Parts, cards: Sequence[Card], node: str, now: float, mode: Mode) -> dict[str, str]:
    """What is told the pod that gets these parts."""
    if mode is not Mode.VIRTUAL:
        index = ",".join(str(part.card) for one in parts for part in one)
        return {_INDEX: index, _TIME: str(int(now) * _NANO)}
    devices = ";".join(":".join(_device(part, cards[part.card]) for part in one) for one in parts)
    return {
        _IDS: devices,
        "volcano.sh/devices-to-allocate": devices,
        "volcano.sh/vgpu-node": node,
        "volcano.sh/vgpu-time": str(int(now)),
        "volcano.sh/bind-phase": "allocating",
        "volcano.sh/bind-time": str(int(now)),
    }


def _device(part: Part, card: Card) -> str:
    piece = f"[{part.piece.cut}-{part.piece.position}]" if part.piece else ""
    return f"{card.uuid}{piece},{card.kind},{part.memory:g},{part.cores:g}"


def read(annotations: Mapping[str, str], ask: Ask, cards: Sequence[Card], mode: Mode) -> list[list[Part]] | None:
    """What the pod holds, by its annotations; None where they do not say."""
    try:
        if mode is Mode.VIRTUAL:
            return _read_devices(annotations[_IDS], cards)
        memory = ask.shares[0].memory
        parts = [Part(int(text), memory, 0.0) for text in annotations[_INDEX].split(",")]
    except (KeyError, ValueError, IndexError, TypeError):
        return None
    return [parts] if all(0 <= part.card < len(cards) for part in parts) else None


def _read_devices(text: str, cards: Sequence[Card]) -> list[list[Part]]:
    at = {card.uuid: card.index for card in cards}
    devices = [[one.split(",") for one in container.split(":") if one] for container in text.split(";")]
    return [[_part(at, *one) for one in container] for container in devices]


def _part(at: Mapping[str, int], name: str, _kind: str, memory: str, cores: str) -> Part:
    """The name of a piece is that of its card with cut and position in brackets."""
    uuid, _, inside = name.removesuffix("]").partition("[")
    cut, _, position = inside.rpartition("-")
    return Part(at[uuid], float(memory), float(cores), Piece(cut, int(position)) if inside else None)
