"""Measure what the nodes of a cluster use, and store it when it changes noticeably.

Plugins read means, not moments: a mean follows a lasting change within minutes, and a short peak hardly moves it. So
few rows are written and few nodes change for the engine, although every node is measured every few seconds.
"""

import logging
import math
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

from hekla.apps.clusters import services
from hekla.apps.clusters.models import UsageFacts
from hekla.backends.base import BackendError, NodeMeter, NodeMetrics
from hekla.controller.lease_context import LeaseContext
from hekla.controller.state import UsageMean
from hekla.domain.cards import MAX_CARDS, mebibytes
from hekla.domain.node_usage import CARD_RESOURCE_LENGTH, MAX_AGE, MEAN_SECONDS, CardUsage

log = logging.getLogger(__name__)
EVERY = timedelta(seconds=15)
NOTICEABLE = 2.0
"""Percentage points, of the CPU, the memory or a card."""
_WRITE_AFTER = 0.4 * MAX_AGE
_PART_AT_ONCE, _LEAST_AT_ONCE = 5, 500
"""Of the rows that did not change and are written only because of their age: a fifth of the nodes, or 500."""
_MOST_PERCENT, _MOST_AMOUNT = 1000.0, 2**62


def measure_nodes(lease: LeaseContext, meter: NodeMeter, means: dict[str, UsageMean]) -> tuple[bool, bool]:
    """Store the usage of nodes. Returns whether some were measured, and whether something was stored.

    A failure is logged, and the next call tries again. Raises LeaseLost.
    """
    try:
        found = meter.measure_nodes()
    except BackendError as error:
        log.warning("could not measure nodes, will try again: %s", error)
        return False, False
    for gone in means.keys() - {one.name for one in found}:
        del means[gone]
    news = list(_news(found, means))
    if news:
        services.observe_usage(lease.cluster_id, lease.epoch, news)
        for facts in news:
            means[facts.name].stored = facts
    return bool(found), bool(news)


def _news(found: Sequence[NodeMetrics], means: dict[str, UsageMean]) -> Iterator[UsageFacts]:
    """What is to be stored: what changed, and the oldest of the rest."""
    aged: list[UsageFacts] = []
    for one in found:
        mean = means.setdefault(one.name, UsageMean(_percent(one.cpu), _percent(one.memory), one.at))
        _follow(mean, one)
        facts = _facts(one, mean)
        if mean.stored is None or _differ(mean.stored, facts):
            yield facts
        elif facts.at - mean.stored.at >= _WRITE_AFTER:
            aged.append(facts)
    most = max(_LEAST_AT_ONCE, len(found) // _PART_AT_ONCE)
    yield from sorted(aged, key=lambda facts: _stored_at(means[facts.name]))[:most]


def _follow(mean: UsageMean, found: NodeMetrics) -> None:
    """Let the mean follow a later measurement."""
    weight = -math.expm1(-max((found.at - mean.at).total_seconds(), 0.0) / MEAN_SECONDS)
    mean.cpu += weight * (_percent(found.cpu) - mean.cpu)
    mean.memory += weight * (_percent(found.memory) - mean.memory)
    mean.at = max(mean.at, found.at)


def _stored_at(mean: UsageMean) -> datetime:
    return mean.stored.at if mean.stored else mean.at


def _facts(found: NodeMetrics, mean: UsageMean) -> UsageFacts:
    cpu, memory = (int(min(found.whole.amount(name), _MOST_AMOUNT)) for name in ("cpu", "memory"))
    cards = [_card(card) for card in found.cards[:MAX_CARDS] if len(card.resource) <= CARD_RESOURCE_LENGTH]
    return UsageFacts(found.name, mean.at, mean.cpu, mean.memory, cpu, memory, cards)


def _card(card: CardUsage) -> dict[str, object]:
    busy, memory = round(_percent(card.busy)), mebibytes(card.memory_mib)
    return {"resource": card.resource, "index": card.index, "busy": busy, "memory_mib": memory}


def _differ(before: UsageFacts, after: UsageFacts) -> bool:
    pairs = [(before.cpu, after.cpu), (before.memory, after.memory), *_busy(before, after)]
    is_same = (before.whole_cpu, before.whole_memory) == (after.whole_cpu, after.whole_memory)
    return not is_same or any(abs(old - new) >= NOTICEABLE for old, new in pairs)


def _busy(before: UsageFacts, after: UsageFacts) -> Iterator[tuple[float, float]]:
    """The usage of each card before and after."""
    known = {(card["resource"], card["index"]): card["busy"] for card in before.cards}
    return ((known.get((card["resource"], card["index"]), -NOTICEABLE), card["busy"]) for card in after.cards)


def _percent(number: float) -> float:
    """A share that a server reported, as one that a row takes; 0 if it is no number."""
    return min(number, _MOST_PERCENT) if number > 0 else 0.0
