"""How the plugin that divides the cluster came to what each queue deserves: its inputs, its rounds, its result.

All figures are those of the plugin itself: its attributes of the queues, and what it noted while it divided.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import compress

import numpy as np

from hekla.domain.resources import Resources
from hekla.engine.columns import Vector
from hekla.engine.model import QueueSpec
from hekla.engine.queue_attributes import QueueAttributes, total_guarantee
from hekla.engine.queue_shares import attributes_of
from hekla.engine.session import Session
from hekla.engine.share_rounds import ShareRound


@dataclass(frozen=True, slots=True)
class DividedQueue:
    """A queue as the plugin sees it.

    `setting`: what its settings say that it deserves. `limit`: the most it may hold, 0 where unlimited; `unlimited`:
    those resources. `request`: of its jobs with pods, also of what they hold. `deserved`: the result.
    """

    name: str
    ancestors: tuple[str, ...]
    weight: int
    setting: Resources
    guarantee: Resources
    capability: Resources
    limit: Resources
    unlimited: frozenset[str]
    request: Resources
    allocated: Resources
    deserved: Resources
    has_jobs: bool


@dataclass(frozen=True, slots=True)
class DividingRound:
    """A round as amounts; see `ShareRound`."""

    left: Resources
    weights: float
    offered: Mapping[str, Resources]
    deserved: Mapping[str, Resources]


@dataclass(frozen=True, slots=True)
class ShareDerivation:
    """How the cluster is divided. `plugin`: empty if none divides it. `rounds`: empty if it does not work in rounds."""

    plugin: str
    total: Resources
    guaranteed: Resources
    queues: Mapping[str, DividedQueue]
    rounds: tuple[DividingRound, ...]


def derive(session: Session) -> ShareDerivation:
    """The derivation in an open session for queries (`open_session`)."""
    amounts = session.dimensions.resources
    found, plugin = dict[str, DividedQueue](), ""
    for name, queue in session.queues.items():
        plugin, attributes = attributes_of(session, queue)
        found[name] = _divided(session, queue, attributes)
    noted = session.share_notes.rounds if session.share_notes and plugin else []
    return ShareDerivation(
        plugin,
        amounts(session.total_resources),
        amounts(total_guarantee(session)),
        found,
        tuple(_round(session, one) for one in noted),
    )


def _divided(session: Session, queue: QueueSpec, attributes: QueueAttributes) -> DividedQueue:
    amounts, limit = session.dimensions.resources, attributes.real_capability
    return DividedQueue(
        name=queue.name,
        ancestors=attributes.ancestors,
        weight=queue.weight,
        setting=queue.deserved or Resources(),
        guarantee=amounts(attributes.guarantee),
        capability=queue.capability or Resources(),
        limit=amounts(np.where(np.isfinite(limit), limit, 0.0)),
        unlimited=frozenset(compress(session.dimensions.names, np.isinf(limit).tolist())),
        request=amounts(attributes.request),
        allocated=amounts(attributes.allocated),
        deserved=amounts(attributes.deserved),
        has_jobs=queue.name in session.queue_totals,
    )


def _round(session: Session, noted: ShareRound) -> DividingRound:
    return DividingRound(
        session.dimensions.resources(noted.left),
        noted.weights,
        _by_name(session, noted.offered),
        _by_name(session, noted.deserved),
    )


def _by_name(session: Session, rows: Mapping[str, Vector]) -> dict[str, Resources]:
    return {name: session.dimensions.resources(row) for name, row in rows.items()}
