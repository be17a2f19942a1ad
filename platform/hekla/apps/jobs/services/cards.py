"""Gives pods cards of their nodes, in the transaction that records their binds.

The rows are the only record of who holds which card: a backend or a controller that starts anew finds it there.
"""

from collections import defaultdict
from collections.abc import Collection, Mapping
from datetime import datetime

from hekla.apps.clusters.models import Node
from hekla.apps.jobs.models import Pod
from hekla.apps.jobs.selectors.replicas import placed
from hekla.domain.cards import INDEX, NUMBER, TIME, CardUse, HeldCard, NodeCard, decided
from hekla.domain.resources import Resources

_NANO = 1_000_000_000


class CardAssignment:
    """The cards of some nodes of a cluster, and which of them are in use, within one transaction."""

    def __init__(self, cluster_id: int, nodes: Collection[str]) -> None:
        self._nodes = _read(cluster_id, nodes) if nodes else {}

    def assign(self, pod: Pod, request: Resources, annotations: Mapping[str, str], *, now: datetime) -> None:
        """Set the cards and annotations of a pod on a node (not saved yet).

        The scheduler's annotations decide; for other cards, the pod gets the least used ones of its node.
        """
        use = self._nodes.get(pod.node) or CardUse(())
        found = decided(annotations, use.cards, request)
        chosen = use.choose(request, has_shared=bool(found))
        use.add([*found, *chosen])
        pod.cards = [card.as_data() for card in (*found, *chosen)]
        pod.annotations = {**annotations, **_as_annotations(chosen, now)}


def _read(cluster_id: int, names: Collection[str]) -> dict[str, CardUse]:
    nodes = Node.objects.filter(cluster_id=cluster_id, name__in=names).exclude(cards=[])
    found = {name: CardUse([NodeCard(**card) for card in cards]) for name, cards in nodes.values_list("name", "cards")}
    holders = placed(Pod.objects.filter(node__in=found, job__cluster_id=cluster_id)).exclude(cards=[])
    by_node: dict[str, list[HeldCard]] = defaultdict(list)
    for name, cards in holders.values_list("node", "cards") if found else ():
        by_node[name] += [HeldCard(**card) for card in cards]
    for name, cards in by_node.items():
        found[name].add(cards)
    return found


def _as_annotations(chosen: list[HeldCard], now: datetime) -> dict[str, str]:
    """As Volcano's plugin `deviceshare` would have decided: it reads this if a later policy has it."""
    numbers = [str(card.index) for card in chosen if card.resource == NUMBER]
    return {INDEX: ",".join(numbers), TIME: str(int(now.timestamp()) * _NANO)} if numbers else {}
