"""Record the nodes of a cluster as its backend reports them."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from datetime import datetime
from functools import lru_cache
from itertools import islice
from typing import Any

from hekla.apps.clusters import selectors, services
from hekla.apps.clusters.models import MAX_NODE_MESSAGE, Cluster, NodeFacts
from hekla.backends.base import Backend, NodeInfo
from hekla.controller.state import RecordedNode
from hekla.domain.cards import MAX_CARDS, MEMORY, NUMBER, VIRTUAL, NodeCard, mebibytes
from hekla.domain.network_topology import MAX_TIER, HyperNodeLevel
from hekla.domain.resources import Resources
from hekla.domain.taints import Taint
from hekla.domain.validation import is_text
from hekla.engine import registry
from hekla.engine.model import NodeSpec
from hekla.engine.plugins.deviceshare.inventory import REGISTER, UNHEALTHY, cards_of
from hekla.engine.plugins.deviceshare.requests import Mode

MAX_TAINTS, MAX_TAINT = 64, 400
"""Kubernetes limits a key to 317 characters, and a value to 63."""
MAX_ANNOTATION = 32 * 1024
"""Longer values are left out: a part of one would mean something else."""
MAX_CARD_TEXT = 600
"""Of a card's resource, id and model together."""
MAX_LEVELS, MAX_LEVEL_TEXT = 16, 506
"""Hypernodes that hold one node; their names and the names of their tiers."""
MAX_IMAGES, MAX_IMAGE_NAME = 100, 400
"""A kubelet reports 50 images; most have a tag and a digest as names."""


def refresh(
    cluster: Cluster, epoch: int, backend: Backend, recorded: dict[str, RecordedNode], *, now: datetime
) -> None:
    """Record the nodes of the backend; only differences are read and written. Raises LeaseLost.

    `recorded`: by name, the nodes as last recorded under this lease. It is updated.
    """
    reported = {info.name: _facts(info) for info in backend.nodes()}
    versions = selectors.node_versions(cluster)
    news = [one for name, one in reported.items() if _is_news(one, recorded.get(name), versions.get(name))]
    if news:
        services.observe_nodes(cluster, news, now=now, epoch=epoch)
        versions = selectors.node_versions(cluster)
        recorded |= {one.name: RecordedNode(replace(one, images={}), versions.get(one.name)) for one in news}
    if gone := [name for name in versions if name not in reported]:
        for node in selectors.nodes(cluster).filter(name__in=gone):
            services.lose_node(node, epoch=epoch, now=now)
    for name in recorded.keys() - reported.keys():
        del recorded[name]


def _is_news(facts: NodeFacts, recorded: RecordedNode | None, version: str | None) -> bool:
    """Whether the node is reported differently, or its row was changed by others."""
    return recorded is None or recorded.version != version or recorded.facts != facts


def _facts(info: NodeInfo) -> NodeFacts:
    """What is stored of a node: bounded, and without texts that a database does not take."""
    images = _images(info.images)
    return NodeFacts(
        name=info.name,
        allocatable=info.allocatable.quantities(),
        labels=dict(info.labels),
        is_ready=info.ready,
        message=info.message[:MAX_NODE_MESSAGE],
        taints=_taints(info.taints),
        annotations=_annotations(info.annotations),
        cards=_cards(info),
        hypernodes=_hypernodes(tuple(info.hypernodes)),
        numa=info.numa.as_data() if info.numa else {},
        images_digest=_digest(images),
        images=images,
    )


def _taints(taints: Sequence[Taint]) -> list[str]:
    texts = [str(taint) for taint in taints[:MAX_TAINTS]]
    return [text for text in texts if len(text) <= MAX_TAINT and is_text(text)]


def _annotations(annotations: Mapping[str, str]) -> dict[str, str]:
    """Those that plugins read."""
    found = {name: annotations[name] for name in registry.node_annotations() & annotations.keys()}
    return {name: text for name, text in found.items() if len(text) <= MAX_ANNOTATION and is_text(text)}


def _cards(info: NodeInfo) -> list[dict[str, Any]]:
    """The cards that the backend reports, or those that Volcano's device plugin writes to a node."""
    if info.cards:
        return _reported_cards(tuple(info.cards))
    texts = tuple((name, info.annotations[name]) for name in (REGISTER, UNHEALTHY) if name in info.annotations)
    amounts = tuple((name, info.allocatable[name]) for name in (NUMBER, MEMORY) if name in info.allocatable)
    return _registered_cards(texts, amounts) if texts or amounts else []


# All are cached: every node is compared every few seconds, and these facts hardly ever change.


@lru_cache(maxsize=1000)
def _reported_cards(cards: tuple[NodeCard, ...]) -> list[dict[str, Any]]:
    return _as_data(cards)


def _as_data(cards: Sequence[NodeCard]) -> list[dict[str, Any]]:
    texts = ((card, f"{card.resource}{card.id}{card.model}") for card in cards[:MAX_CARDS])
    return [card.as_data() for card, text in texts if len(text) <= MAX_CARD_TEXT and is_text(text)]


@lru_cache(maxsize=20_000)
def _registered_cards(
    annotations: tuple[tuple[str, str], ...], amounts: tuple[tuple[str, float], ...]
) -> list[dict[str, Any]]:
    node = NodeSpec("", Resources(dict(amounts)), annotations=dict(annotations))
    found = ((resource, cards_of(node, mode)) for mode, resource in ((Mode.VIRTUAL, VIRTUAL), (Mode.SHARING, NUMBER)))
    return _as_data(
        [
            NodeCard(resource, card.index, card.uuid, card.kind, mebibytes(card.memory), card.is_healthy)
            for resource, some in found
            for card in some
        ]
    )


@lru_cache(maxsize=20_000)
def _hypernodes(levels: tuple[HyperNodeLevel, ...]) -> list[dict[str, Any]]:
    texts = ((level, f"{level.name}{level.tier_name}") for level in levels[:MAX_LEVELS] if 0 <= level.tier <= MAX_TIER)
    return [asdict(level) for level, text in texts if len(text) <= MAX_LEVEL_TEXT and is_text(text)]


def _images(images: Mapping[str, int]) -> dict[str, int]:
    """The first of them. Names of images are ASCII."""
    first = islice(images.items(), MAX_IMAGES)
    return {name: size for name, size in first if len(name) <= MAX_IMAGE_NAME and name.isascii() and "\0" not in name}


def _digest(images: Mapping[str, int]) -> str:
    """A short text that differs if the names or their total size do; empty without images. Computed for every node."""
    text = "\n".join((*sorted(images), str(sum(images.values()))))
    return hashlib.sha256(text.encode()).hexdigest()[:32] if images else ""
