"""Cards of a node as a person describes them: of simulated nodes, and of vendors whose driver Hekla does not ask."""

from collections import Counter
from collections.abc import Iterable
from typing import Annotated, ClassVar

from pydantic import AfterValidator, Field, StringConstraints

from hekla.backends.config import BackendConfig, FieldWords
from hekla.domain.cards import MAX_CARDS, NVIDIA, NodeCard
from hekla.domain.resources import parse_quantity
from hekla.domain.translation import gettext_noop

_RESOURCE = r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?/[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$"
_MIB = 2**20
CardId = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][-A-Za-z0-9_.]*$", max_length=100)]


def _quantity(text: str) -> str:
    parse_quantity("memory", text)
    return text


class CardConfig(BackendConfig):
    """`count` equal cards, or one for each of `ids`, the names that the driver gives them.

    `resource`: by which jobs request them. `memory`: of each card. `unhealthy`: those that pods do not get, by their
    numbers from 0 among the cards of the resource.
    """

    words: ClassVar[FieldWords] = {
        "resource": (gettext_noop("Resource"), gettext_noop("The name by which jobs request these cards.")),
        "model": (gettext_noop("Model"), gettext_noop("For example: NVIDIA-H100-80GB-HBM3.")),
        "memory": (gettext_noop("Memory of each card"), gettext_noop("For example: 80Gi.")),
        "count": (gettext_noop("Number of cards"), ""),
        "ids": (gettext_noop("Card ids"), gettext_noop("One per line, in place of a number of cards.")),
        "unhealthy": (gettext_noop("Unhealthy cards"), gettext_noop("Their numbers, from 0, one per line.")),
    }
    main: ClassVar[tuple[str, ...]] = ("model", "memory", "count")

    resource: Annotated[str, Field(pattern=_RESOURCE, max_length=317)] = NVIDIA
    model: Annotated[str, Field(max_length=100)] = ""
    memory: Annotated[str, AfterValidator(_quantity)] = "0"
    count: Annotated[int, Field(ge=1, le=MAX_CARDS)] = 1
    ids: Annotated[tuple[CardId, ...], Field(max_length=MAX_CARDS)] = ()
    unhealthy: Annotated[tuple[int, ...], Field(max_length=MAX_CARDS)] = ()


def _bounded(described: tuple[CardConfig, ...]) -> tuple[CardConfig, ...]:
    if sum(len(one.ids) or one.count for one in described) > MAX_CARDS:
        raise ValueError(f"A node has at most {MAX_CARDS} cards.")
    return described


Cards = Annotated[tuple[CardConfig, ...], AfterValidator(_bounded)]


def described(configs: Iterable[CardConfig]) -> tuple[NodeCard, ...]:
    """The cards of a node."""
    found: list[NodeCard] = []
    numbers: Counter[str] = Counter()
    for one in configs:
        memory = int(parse_quantity("memory", one.memory) // _MIB)
        for name in one.ids or [""] * one.count:
            index = numbers[one.resource]
            found.append(NodeCard(one.resource, index, name, one.model, memory, index not in one.unhealthy))
            numbers[one.resource] += 1
    return tuple(found)
