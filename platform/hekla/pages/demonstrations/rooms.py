"""The nodes of a stage as a drawing: squares for what they have, with the number of the job that holds each."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import repeat

from django.utils.translation import gettext as _

from hekla.apps.demonstrations.stage import Amount, CardMemory, CellCpus, LinkedCards, Part, Stage, StageNode, Words
from hekla.domain.numa import pin
from hekla.domain.resources import parse_quantity
from hekla.pages.demonstrations.moments import HeldPod

_MILLI = 1000


@dataclass(frozen=True, slots=True)
class DrawnPart:
    """Squares of a node. `holders`: for each the number of the job that holds it, or 0. `over`: for squares that jobs
    hold beyond what there is. `words`: the same in words.
    """

    name: Words
    holders: tuple[int, ...]
    over: tuple[int, ...]
    words: str


@dataclass(frozen=True, slots=True)
class DrawnNode:
    """A node."""

    name: str
    note: Words
    parts: tuple[DrawnPart, ...]


@dataclass(frozen=True, slots=True)
class DrawnArea:
    """Nodes in the same rack or zone. `name`: empty on a stage without."""

    name: Words
    nodes: tuple[DrawnNode, ...]


def areas(stage: Stage, held: Sequence[HeldPod]) -> list[DrawnArea]:
    """The racks or zones with their nodes."""
    found: dict[str, list[DrawnNode]] = defaultdict(list)
    for name, node in stage.named_nodes().items():
        parts = _parts(node, [pod for pod in held if pod.node == name])
        found[str(node.area)].append(DrawnNode(name, node.note, parts))
    return [DrawnArea(name, tuple(nodes)) for name, nodes in found.items()]


def pins(cells: Sequence[int], pods: Sequence[HeldPod]) -> list[tuple[int, ...]]:
    """For each of the pods of a node, in the order of their binds, its CPUs in each NUMA cell, as kubelets pin them."""
    free, found = list(cells), []
    for pod in pods:
        parts = pin(free, int(pod.request.amount("cpu") // _MILLI))
        free = [left - part for left, part in zip(free, parts, strict=True)]
        found.append(parts)
    return found


def _parts(node: StageNode, pods: Sequence[HeldPod]) -> tuple[DrawnPart, ...]:
    cells = pins(node.cells, pods)
    return tuple(_drawn(part, _holders(part, pods, cells)) for part in node.parts)


def _holders(part: Part, pods: Sequence[HeldPod], cells: Sequence[Sequence[int]]) -> list[int]:
    """The numbers of the jobs that hold squares of this part; more than it has if the part is overcommitted."""
    match part:
        case Amount():
            each = parse_quantity(part.resource, part.each)
            counts = [(pod.number, round(pod.request.amount(part.resource) / each)) for pod in pods]
            return _flat(sorted(counts))[part.start : part.start + part.count]
        case LinkedCards():
            holders = {card["index"]: pod.number for pod in pods for card in pod.cards}
            return [holders.get(card, 0) for card in part.cards]
        case CardMemory():
            parts = ((pod.number, card) for pod in pods for card in pod.cards if card["index"] == part.card)
            return _flat((number, round(card["part_mib"] / part.mebibytes)) for number, card in parts)
        case CellCpus():
            return _flat((pod.number, pinned[part.cell]) for pod, pinned in zip(pods, cells, strict=True))


def _flat(counts: Iterable[tuple[int, int]]) -> list[int]:
    return [number for number, count in counts for _count in range(count)]


def _drawn(part: Part, holders: Sequence[int]) -> DrawnPart:
    squares = (*holders, *repeat(0, part.count - len(holders)))
    return DrawnPart(part.name, squares[: part.count], squares[part.count :], _words(squares))


def _words(squares: Sequence[int]) -> str:
    counts = Counter(number for number in squares if number)
    held = [_("job %(job)s: %(count)s") % {"job": number, "count": count} for number, count in counts.items()]
    return ", ".join([*held, _("free: %s") % squares.count(0)])
