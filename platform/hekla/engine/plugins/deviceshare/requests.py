"""The cards that a pod requests, by the limits of its containers (`volcano-spec` §5.7)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from hekla.domain.resources import Resources
from hekla.engine.model import PodSpec
from hekla.engine.policy import Argument

_UNIT = 1000
"""Amounts of cards are in thousandths."""


class Mode(Enum):
    """How cards are allocated: parts of their memory, whole cards, or virtual cards."""

    SHARING = "GPUSharingEnable"
    NUMBER = "GPUNumberEnable"
    VIRTUAL = "VGPUEnable"


@dataclass(frozen=True, slots=True)
class ContainerRequest:
    """The number of different cards, and the part of each: memory (amount or per cent) and cores (per cent), or all."""

    count: int
    memory: float = 0.0
    percentage: float = 0.0
    cores: float = 0.0
    is_whole: bool = False


@dataclass(frozen=True, slots=True)
class CardFilter:
    """The cards that a pod allows and excludes, by words in their type and by id; empty: any."""

    types: tuple[str, ...] = ()
    no_types: tuple[str, ...] = ()
    ids: tuple[str, ...] = ()
    no_ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CardRequest:
    """One share per container that requests cards. `rules`: pods with a common rule never share a card."""

    shares: tuple[ContainerRequest, ...] = ()
    filters: CardFilter = CardFilter()
    rules: tuple[int, ...] = ()


NO_CARDS = CardRequest()
Rule = Mapping[str, str]
"""Labels: pods that have all of them do not share virtual cards with each other."""


def exclusive_rules(written: Argument | None) -> tuple[Rule, ...]:
    """The rules in `deviceshare.GPUExclusiveRules`, a list of mappings; values that are no strings are ignored."""
    listed = written if isinstance(written, Sequence) and not isinstance(written, str) else ()
    rules = ({k: v for k, v in rule.items() if isinstance(v, str)} for rule in listed if isinstance(rule, Mapping))
    return tuple(rule for rule in rules if rule)


def card_request(spec: PodSpec, mode: Mode, rules: Sequence[Rule] = ()) -> CardRequest:
    """The pod's card request in this mode."""
    containers = spec.device_limits or ((spec.limits,) if spec.limits else (spec.request,))
    if mode is Mode.VIRTUAL:
        shares = tuple(_virtual(limits) for limits in containers if _plain(limits, "vgpu-number") >= 1)
        mine = tuple(at for at, rule in enumerate(rules) if rule.items() <= spec.labels.items())
        return CardRequest(shares, _filters(spec.annotations), mine) if shares else NO_CARDS
    if mode is Mode.NUMBER:
        count = int(sum(_plain(limits, "gpu-number") for limits in containers))
        return CardRequest((ContainerRequest(count, is_whole=True),)) if count > 0 else NO_CARDS
    memory = sum(_plain(limits, "gpu-memory") for limits in containers)
    return CardRequest((ContainerRequest(1, memory=memory),)) if memory > 0 else NO_CARDS


def _virtual(limits: Resources) -> ContainerRequest:
    """The virtual cards of one container; without a memory limit, all memory of each card."""
    memory, percentage = _plain(limits, "vgpu-memory"), _plain(limits, "vgpu-memory-percentage")
    percentage = 0.0 if memory else percentage or 100.0
    return ContainerRequest(int(_plain(limits, "vgpu-number")), memory, percentage, _plain(limits, "vgpu-cores"))


def _plain(limits: Resources, name: str) -> float:
    return limits.amount(f"volcano.sh/{name}") / _UNIT


def _filters(annotations: Mapping[str, str]) -> CardFilter:
    def words(name: str) -> tuple[str, ...]:
        return tuple(word.strip() for word in annotations.get(f"nvidia.com/{name}", "").split(",") if word.strip())

    types, no_types = words("use-gputype"), words("nouse-gputype")
    return CardFilter(types, no_types, words("use-gpuuuid"), words("nouse-gpuuuid"))
