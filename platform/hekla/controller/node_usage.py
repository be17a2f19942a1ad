"""Measure what the nodes of a cluster use, and store it when it changes noticeably.

Plugins read means, not moments: a mean follows a lasting change within minutes, and a short peak hardly moves it. So
few rows are written and few nodes change for the engine, although every node is measured every few seconds.
"""

import logging
import math
from collections.abc import Sequence
from datetime import timedelta
from typing import Any
from zlib import crc32

from hekla.apps.clusters import services
from hekla.apps.clusters.models import UsageFacts
from hekla.backends.base import BackendError, NodeMeter, NodeMetrics
from hekla.controller.lease_context import LeaseContext
from hekla.controller.state import UsageMean
from hekla.domain.cards import MAX_CARDS, mebibytes
from hekla.domain.node_usage import CARD_RESOURCE_LENGTH, MAX_AGE, MEAN_SECONDS, CardMetrics
from hekla.domain.resources import Resources

log = logging.getLogger(__name__)
EVERY = timedelta(seconds=15)
NOTICEABLE = 3.0
"""Percentage points, of the CPU, the memory or a card."""
WRITE_AFTER, WRITE_BEFORE = 0.4 * MAX_AGE, 0.8 * MAX_AGE
"""The age at which a row that did not change is written again: another one for each node."""
_MOST_PERCENT, _MOST_AMOUNT = 1000.0, 2**62


def measure_nodes(lease: LeaseContext, meter: NodeMeter, means: dict[str, UsageMean]) -> list[UsageFacts] | None:
    """Measure the nodes. Returns what was stored anew; None if no node was measured.

    A failure is logged, and the next call tries again. Raises LeaseLost.
    """
    try:
        found = meter.measure_nodes()
    except BackendError as error:
        log.warning("could not measure nodes, will try again: %s", error)
        return None
    if not found:
        return None
    _forget_gone(found, means)
    news = _news(found, means)
    if news:
        services.observe_usage(lease.cluster_id, lease.epoch, news)
        for facts in news:
            means[facts.name].stored = facts
    return news


def _forget_gone(found: Sequence[NodeMetrics], means: dict[str, UsageMean]) -> None:
    """Forget nodes that were not measured for so long that their usage is no longer used.

    A server may leave out nodes for a moment. Their rows are not written again when they are back.
    """
    gone = means.keys() - {one.name for one in found}
    latest = max(one.at for one in found) if gone else None
    for name in gone:
        if latest and latest - means[name].at > MAX_AGE:
            del means[name]


def _news(found: Sequence[NodeMetrics], means: dict[str, UsageMean]) -> list[UsageFacts]:
    """What is to be stored: what changed or is old. Every node of thousands comes by here."""
    news: list[UsageFacts] = []
    for one in found:
        mean = means.get(one.name)
        if mean is None:
            write_after = _write_after(one.name)
            mean = means[one.name] = UsageMean(_percent(one.cpu), _percent(one.memory), one.at, write_after)
        else:
            _follow(mean, one)
        stored = mean.stored
        if stored is None or mean.at - stored.at >= mean.write_after or _differs(stored, mean, one):
            news.append(_facts(one, mean))
    return news


def _write_after(node: str) -> timedelta:
    """Rows that were written together are not written together again: that would be thousands at once."""
    return WRITE_AFTER + crc32(node.encode()) / 2**32 * (WRITE_BEFORE - WRITE_AFTER)


def _follow(mean: UsageMean, found: NodeMetrics) -> None:
    """Let the mean follow a later measurement."""
    weight = -math.expm1(-max((found.at - mean.at).total_seconds(), 0.0) / MEAN_SECONDS)
    mean.cpu += weight * (_percent(found.cpu) - mean.cpu)
    mean.memory += weight * (_percent(found.memory) - mean.memory)
    mean.at = max(mean.at, found.at)


def _differs(stored: UsageFacts, mean: UsageMean, found: NodeMetrics) -> bool:
    """Whether the usage is noticeably another one than what is stored."""
    if abs(stored.cpu - mean.cpu) >= NOTICEABLE or abs(stored.memory - mean.memory) >= NOTICEABLE:
        return True
    if stored.whole_cpu != found.whole.amount("cpu") or stored.whole_memory != found.whole.amount("memory"):
        return True
    if not stored.cards and not found.cards:
        return False
    before, after = (
        {(card["resource"], card["index"]): card["busy"] for card in cards} for cards in (stored.cards, _cards(found))
    )
    return before.keys() != after.keys() or any(abs(before[key] - after[key]) >= NOTICEABLE for key in before)


def _facts(found: NodeMetrics, mean: UsageMean) -> UsageFacts:
    return UsageFacts(found.name, mean.at, mean.cpu, mean.memory, *_whole(found.whole), _cards(found))


def _whole(whole: Resources) -> tuple[int, int]:
    return int(min(whole.amount("cpu"), _MOST_AMOUNT)), int(min(whole.amount("memory"), _MOST_AMOUNT))


def _cards(found: NodeMetrics) -> list[dict[str, Any]]:
    return [_card(card) for card in found.cards[:MAX_CARDS] if len(card.resource) <= CARD_RESOURCE_LENGTH]


def _card(card: CardMetrics) -> dict[str, Any]:
    busy, memory = round(_percent(card.busy)), mebibytes(card.memory_mib)
    return {"resource": card.resource, "index": card.index, "busy": busy, "memory_mib": memory}


def _percent(number: float) -> float:
    """A share that a server reported, as one that a row takes; 0 if it is no number."""
    return min(number, _MOST_PERCENT) if number > 0 else 0.0
