"""Resources that count cards of any vendor, and the models of a node's cards.

Device plugins name what they count: `nvidia.com/gpu`, `nvidia.com/mig-1g.5gb`, `huawei.com/Ascend910`, `amd.com/gpu`,
`kunlunxin.com/xpu`. Unlike cards are never added up without a word about it.

The model of a node's cards is the label `<resource>.product`, as NVIDIA's GPU feature discovery writes it, or the label
of another vendor. Volcano's plugin `capacity-card` names a part of a card after the whole one:
`NVIDIA-A100/mig-1g.5gb-mixed`.
"""

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache

from hekla.domain.cards import MEMORY, NVIDIA, NodeCard
from hekla.domain.resources import Resources

CARD_NAME = "volcano.sh/card.name"
"""Annotation of a pod: the models that it may use, the best first, separated by `|`."""
_UNIT = 1000
_CARD = re.compile(
    r"[vs]?gpu|npu|v?xpu|v?tpu|v?dcu|[vs]?mlu|v?gcu|ppu|mig-|ascend|gaudi|neuron|i915$|xe$|[cdst]px_nps", re.IGNORECASE
)
"""How the names of card resources begin, after the vendor."""
_PART = re.compile(r"mem|core|percent|ratio|priority", re.IGNORECASE)
"""Properties of cards that are resources too, for example `volcano.sh/vgpu-cores`."""
_PRODUCT = ".product"
_OTHER_LABELS = {"amd.com": "amd.com/gpu.product-name", "huawei.com": "node.kubernetes.io/npu.chip.name"}
_SHARED, _MIG = "nvidia.com/gpu.shared", "nvidia.com/mig-"
_VENDOR_OF = {"volcano.sh": "nvidia.com"}
"""Volcano's own resources share cards of this vendor."""
_NO_LABEL = re.compile(r"[^A-Za-z0-9_.-]+")
_LABEL_LENGTH = 63


@lru_cache(maxsize=4096)
def is_card(resource: str) -> bool:
    """Whether the resource counts cards: whole ones, MIG instances, or equal parts of shared cards."""
    vendor, _, kind = resource.partition("/")
    return bool(vendor and _CARD.match(kind)) and not _PART.search(kind)


def of_cards(names: Iterable[str]) -> list[str]:
    """Those of the resources that belong to cards, in order; with the memory of shared cards."""
    return sorted(name for name in names if is_card(name) or name == MEMORY)


def card_counts(request: Resources) -> dict[str, float]:
    """How many cards of each resource the request holds. A part of the memory of a shared card counts as one card."""
    found = {name: amount / _UNIT for name, amount in request.items() if is_card(name)}
    return found or ({MEMORY: 1.0} if request.amount(MEMORY) else {})


def product_labels(cards: Iterable[NodeCard]) -> dict[str, str]:
    """The label with the model of the cards, for each resource whose cards are all of one model."""
    models: dict[str, set[str]] = {}
    for card in cards:
        models.setdefault(card.resource, set()).add(_label(card.model))
    return {f"{name}{_PRODUCT}": one for name, (one, *others) in models.items() if one and not others}


def _label(model: str) -> str:
    """A model as the value of a label: `NVIDIA-A100-SXM4-80GB`."""
    return _NO_LABEL.sub("-", model)[:_LABEL_LENGTH].strip("-_.")


def model_of(resource: str, labels: Mapping[str, str]) -> str:
    """The model of a node's cards of this resource, with its MIG profile or share; without a label, the resource."""
    product = _product(resource, labels)
    if not product:
        return resource
    if resource.startswith(_MIG):
        return f"{product}/mig-{resource.removeprefix(_MIG)}-mixed"
    if resource == _SHARED:
        replicas = labels.get(f"{NVIDIA}.replicas", "")
        return f"{product}/mps-{_gigabytes(labels.get(f'{NVIDIA}.memory', ''))}g*1/{replicas}"
    return product


def _product(resource: str, labels: Mapping[str, str]) -> str:
    """The label of the resource itself, else the first one of its vendor; empty without one."""
    if own := labels.get(f"{resource}{_PRODUCT}"):
        return own
    vendor = resource.partition("/")[0]
    vendor = _VENDOR_OF.get(vendor, vendor)
    begin = f"{vendor}/"
    names = [name for name in labels if name.endswith(_PRODUCT) and name.startswith(begin)]
    return labels.get(min(names, default=_OTHER_LABELS.get(vendor, "")), "")


def _gigabytes(mebibytes: str) -> int:
    return round(int(mebibytes) / 1024) if mebibytes.isdecimal() and len(mebibytes) < 16 else 0  # noqa: PLR2004
