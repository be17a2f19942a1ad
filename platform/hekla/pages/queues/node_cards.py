"""The cards of nodes, and which pods hold them."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hekla.apps.accounts.models import User
from hekla.apps.clusters import selectors as clusters
from hekla.apps.clusters.models import Node
from hekla.apps.jobs import selectors as jobs
from hekla.apps.jobs.models import Pod
from hekla.apps.tenancy.selectors import Rights
from hekla.domain.cards import HeldCard, NodeCard

_MOST = 8


@dataclass
class CardView:
    """A card of a node. `pods`: those that hold it and that the person may see; `others`: how many more there are.

    `usage`: as `domain.node_usage.CardMetrics`; None if it was not measured in the last minutes.
    """

    card: NodeCard
    pods: list[Pod] = field(default_factory=list)
    others: int = 0
    usage: Mapping[str, Any] | None = None

    @property
    def memory(self) -> str:
        """Empty if unknown."""
        return f"{self.card.memory_mib / 1024:.4g} GiB" if self.card.memory_mib else ""

    @property
    def used_memory(self) -> str:
        """What processes use of it; empty if unknown."""
        return f"{self.usage['memory_mib'] / 1024:.4g} GiB" if self.usage else ""

    def add(self, pod: Pod, *, is_visible: bool) -> None:
        """A pod holds it."""
        if is_visible and len(self.pods) < _MOST:
            self.pods.append(pod)
        else:
            self.others += 1


def cards_of(nodes: Sequence[Node], user: User, rights: Rights) -> dict[int, list[CardView]]:
    """The cards of each node that has some, by row id."""
    found = {pk: [CardView(NodeCard(**card)) for card in cards] for pk, cards in clusters.node_cards(nodes).items()}
    holders = jobs.card_holders([node for node in nodes if node.pk in found]) if found else {}
    sees = jobs.seeing(user, rights)
    for node in nodes:
        held: dict[str, list[Pod]] = defaultdict(list)
        for pod in holders.get((node.cluster_id, node.name), ()):
            for card in pod.cards:
                held[HeldCard(**card).key].append(pod)
        for view in found.get(node.pk, ()):
            for pod in held[view.card.key]:
                view.add(pod, is_visible=sees(pod.job))
    return found
