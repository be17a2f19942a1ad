"""The current usage of nodes and queues, for the pages that show it."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

from django.utils.translation import get_language
from django.utils.translation import gettext_lazy as _

from hekla.apps.accounts.models import User
from hekla.apps.clusters.models import Cluster, Node
from hekla.apps.clusters.selectors import NodeMeasurement
from hekla.apps.demonstrations.stages import STAGES
from hekla.apps.forms import format_amounts
from hekla.apps.job_history import labels, quota_messages
from hekla.apps.jobs import selectors as jobs
from hekla.apps.jobs.selectors import JobOnNode
from hekla.apps.queues import selectors as queues
from hekla.apps.queues.models import Queue
from hekla.apps.tenancy.selectors import Rights
from hekla.domain.card_resources import is_card, of_cards
from hekla.domain.resources import Resources
from hekla.engine.queue_shares import QueueShares
from hekla.pages.queues.node_cards import CardView, cards_of
from hekla.scheduling.card_model_usage import CardModelUsage
from hekla.scheduling.occupancy import Occupancy, QueueUsage

_NOTHING = Resources()
_MAIN = ("cpu", "memory")
_STAGES = frozenset(stage.name for stage in STAGES)
_DEEPEST = 5
"""The deepest indentation of the tree; deeper queues get no more."""
_PARTS = {
    "borrowed": _("%s borrowed"),
    "lent": _("%s lent"),
    "guarantee": _("%s guaranteed"),
    "deserved": _("%s deserved"),
}


@dataclass(frozen=True, slots=True)
class UsageBar:
    """Usage of one resource: `used` of `capacity`, in thousandths or MiB; `words`: the same as text.

    For a queue also what it borrows, lends, is guaranteed and deserves; and `more`, these as text.
    """

    name: str
    used: int
    capacity: int
    words: str
    borrowed: int = 0
    lent: int = 0
    guarantee: int = 0
    deserved: int = 0
    more: str = ""

    @property
    def sentence(self) -> str:
        return "; ".join(filter(None, (self.words, self.more)))


@dataclass(frozen=True, slots=True)
class Branch:
    """A queue in the tree. `depth`: its depth below the highest visible queue; `above`: the name of its parent."""

    view: "QueueView"
    depth: int
    above: str = ""


@dataclass
class NodeView:
    """A node with its usage. `used`: what pods use of it."""

    node: Node
    allocatable: Resources
    used: Resources = _NOTHING
    jobs: Sequence[JobOnNode] = ()
    """Only jobs that the person may see, as `jobs_on` reads them."""
    cards: Sequence[CardView] = ()
    usage: NodeMeasurement | None = None
    """None if it was not measured in the last minutes."""

    @cached_property
    def bars(self) -> Sequence[UsageBar]:
        return bars(self.used, self.allocatable)

    @property
    def free(self) -> str:
        return labels.amounts(self.allocatable - self.used)

    @property
    def models(self) -> Sequence[str]:
        """The models of its cards: those in its labels, else those that the cards name themselves."""
        named = self.node.labelled_models
        return sorted({view.card.model for view in self.cards} - {""}) if self.cards and not named else named

    @property
    def model_words(self) -> str:
        """The models as text, to sort by."""
        return " ".join(self.models)

    @property
    def free_cards(self) -> float:
        """How many cards no pod holds, to sort by."""
        return sum(self._free(name) for name in _card_names(self.allocatable) if is_card(name))

    @property
    def free_cpu(self) -> float:
        """What no pod holds of its CPUs, to sort by."""
        return self._free("cpu")

    @property
    def free_memory(self) -> float:
        """What no pod holds of its memory, to sort by."""
        return self._free("memory")

    @property
    def measured_cpu(self) -> float:
        """The measured use of its CPUs in per cent; -1 if it was not measured. To sort by."""
        return self.usage.cpu if self.usage else -1.0

    def _free(self, name: str) -> float:
        return self.allocatable.amount(name) - self.used.amount(name)


@dataclass
class QueueView:
    """A queue with its usage. `limit`: its capability, at most the capacity of its cluster.

    `language`: the one of the words of its bars.
    """

    queue: Queue
    limit: Resources
    use: QueueUsage
    language: str

    @cached_property
    def bars(self) -> Sequence[UsageBar]:
        return _bars(self.use.used, self.limit, self.language)

    @property
    def card_share(self) -> float:
        """The largest share of its cards that is in use; -1 without cards. To sort by."""
        return max(map(self._share, _resources_of_cards(self.limit)), default=-1.0)

    @property
    def cpu_share(self) -> float:
        """The share of its CPUs that is in use, to sort by."""
        return self._share("cpu")

    @property
    def memory_share(self) -> float:
        """The share of its memory that is in use, to sort by."""
        return self._share("memory")

    def _share(self, name: str) -> float:
        most = self.limit.amount(name)
        return self.use.used.amount(name) / most if most else -1.0


@lru_cache(maxsize=4096)
def _resources_of_cards(limit: Resources) -> tuple[str, ...]:
    """The resources that belong to cards. Cached, since most queues have the same ones."""
    return tuple(of_cards(limit))


@lru_cache(maxsize=4096)
def _card_names(allocatable: Resources) -> tuple[str, ...]:
    """The resources of cards that a node has. Cached, since most nodes have the same ones."""
    return tuple(of_cards(name for name, amount in allocatable.items() if amount))


def _names(capacity: Iterable[str]) -> list[str]:
    """The resources that pages draw: those of cards first, then CPU and memory."""
    return [*of_cards(capacity), *_MAIN]


def bars(used: Resources, capacity: Resources) -> Sequence[UsageBar]:
    """A bar for each resource with a capacity."""
    return _bars(used, capacity, get_language() or "")


@lru_cache(maxsize=4096)
def _bars(used: Resources, capacity: Resources, language: str) -> tuple[UsageBar, ...]:
    """As `bars`, in the language in force. Thousands of nodes have few different amounts."""
    names = (name for name in _names(capacity) if capacity.amount(name))
    return tuple(_bar(name, used.amount(name), capacity.amount(name), language) for name in names)


def _bar(name: str, used: float, capacity: float, language: str) -> UsageBar:
    words = _words(name, used, capacity, language)
    return UsageBar(name, _scaled(name, used), max(_scaled(name, capacity), 1), words)


@lru_cache(maxsize=4096)
def _words(name: str, used: float, capacity: float, _language: str) -> str:
    """Use and capacity in words, in the language in force."""
    return labels.part(Resources({name: used}), Resources({name: capacity}), name)


def _scaled(name: str, amount: float) -> int:
    return int(amount // 2**20) if name == "memory" else int(amount)


def share_bars(shares: QueueShares) -> list[UsageBar]:
    """A bar for each resource that the queue may use."""
    return [_share_bar(shares, name) for name in _names(shares.limit) if shares.limit.amount(name)]


def card_bars(uses: Iterable[CardModelUsage]) -> list[UsageBar]:
    """A bar for each model of cards that the queue limits."""
    return [UsageBar(use.model, round(use.held), max(use.most, 1), _card_words(use)) for use in uses]


def _card_words(use: CardModelUsage) -> str:
    return _("%(used)s of %(capacity)s") % {"used": f"{use.held:g}", "capacity": f"{use.most} {use.model}"}


def _share_bar(shares: QueueShares, name: str) -> UsageBar:
    bar = _bar(name, shares.allocated.amount(name), shares.limit.amount(name), get_language() or "")
    parts = {part: getattr(shares, part).amount(name) for part in ("borrowed", "lent", "guarantee", "deserved")}
    phrases = [_PARTS[part] % labels.amounts(Resources({name: amount})) for part, amount in parts.items() if amount]
    scaled = {part: _scaled(name, amount) for part, amount in parts.items()}
    return UsageBar(name, bar.used, bar.capacity, bar.words, **scaled, more="; ".join(phrases))


def settings(queue: Queue) -> list[tuple[str, str]]:
    """The settings for node groups and the hierarchy that the queue has: label and text."""
    groups = {
        _("Required node groups"): queue.required_node_groups,
        _("Preferred node groups"): queue.preferred_node_groups,
        _("Excluded node groups"): queue.excluded_node_groups,
        _("Avoided node groups"): queue.avoided_node_groups,
    }
    found = [(str(label), ", ".join(names)) for label, names in groups.items() if names]
    if queue.node_group_limits:
        limits = (f"{group}: {format_amounts(amounts)}" for group, amounts in queue.node_group_limits.items())
        found.append((str(_("Limits in node groups")), "; ".join(limits)))
    if queue.card_quota:
        found.append((str(_("Card limits by model")), format_amounts(queue.card_quota)))
    if queue.hierarchy:
        weights = f" ({queue.hierarchy_weights})" if queue.hierarchy_weights else ""
        found.append((str(_("Hierarchy")), queue.hierarchy + weights))
    return found


def is_of_demonstration(cluster: Cluster) -> bool:
    """Whether the cluster belongs to one of the demonstrations, which have pages of their own and are mostly idle."""
    return cluster.name in _STAGES


def nodes(whole: Occupancy, *, with_demonstrations: bool = True) -> list[NodeView]:
    """All nodes with their usage, the simulated ones last. Without demonstrations: only those of other clusters."""
    real, simulated = list[NodeView](), list[NodeView]()
    place_of: dict[int, list[NodeView] | None] = {}
    for node, allocatable in whole.nodes:
        cluster_id = node.cluster_id  # each access costs a call, and there may be thousands of nodes
        if cluster_id not in place_of:
            is_left_out = not with_demonstrations and is_of_demonstration(node.cluster)
            place_of[cluster_id] = None if is_left_out else simulated if node.cluster.is_simulated else real
        if (place := place_of[cluster_id]) is not None:
            place.append(NodeView(node, allocatable, whole.machines.get((cluster_id, node.name), _NOTHING)))
    return [*real, *simulated]


def node_view(whole: Occupancy, node: Node, allocatable: Resources) -> NodeView:
    """A node with its usage."""
    return NodeView(node, allocatable, whole.machines.get((node.cluster_id, node.name), _NOTHING))


def name_jobs(views: Sequence[NodeView], user: User, rights: Rights) -> None:
    """Add to each node the jobs with pods on it that the person may see."""
    found = jobs.jobs_on([view.node for view in views], user, rights)
    for view in views:
        view.jobs = found.get((view.node.cluster_id, view.node.name), ())


def name_cards(views: Sequence[NodeView], user: User, rights: Rights) -> None:
    """Add to each node its cards, with the pods on them that the person may see."""
    found = cards_of([view.node for view in views], user, rights)
    for view in views:
        view.cards = found.get(view.node.pk, [])


def queue_views(user: User, whole: Occupancy, rights: Rights | None = None) -> list[QueueView]:
    """The queues that the person may see. `rights`: the person's rights, if already read."""
    return views_of(queues.listed_visible_to(user, rights), whole)


def views_of(rows: Iterable[Queue], whole: Occupancy) -> list[QueueView]:
    """These queues with their usage."""
    clusters, uses, language = by_cluster(whole), whole.queues, get_language() or ""
    return [QueueView(queue, _limit(queue, clusters), uses.get(queue.id) or QueueUsage(), language) for queue in rows]


def as_tree(views: Sequence[QueueView]) -> list[Branch]:
    """The queues in tree order, each after its parent. Queues without a visible parent are roots."""
    below: dict[int | None, list[QueueView]] = defaultdict(list)
    known = {view.queue.pk for view in views}
    for view in views:
        parent = view.queue.parent_id
        below[parent if parent in known else None].append(view)
    found: list[Branch] = []

    def grow(parent: QueueView | None, depth: int) -> None:
        for view in below[parent.queue.pk if parent else None]:
            found.append(Branch(view, min(depth, _DEEPEST), parent.queue.name if parent else ""))
            grow(view, depth + 1)

    grow(None, 0)
    return found


def by_cluster(whole: Occupancy) -> Mapping[int, Resources]:
    """The total allocatable resources of each cluster, by the cluster's primary key."""
    found: dict[int, Resources] | None = whole.derived.get(by_cluster)
    if found is None:
        parts: dict[int, list[Resources]] = defaultdict(list)
        for node, allocatable in whole.nodes:
            parts[node.cluster_id].append(allocatable)
        found = whole.derived[by_cluster] = {cluster: _sum(those) for cluster, those in parts.items()}
    return found


def _limit(queue: Queue, whole: Mapping[int, Resources]) -> Resources:
    cluster = whole.get(queue.cluster_id, _NOTHING)
    if not queue.capability:
        return cluster
    bound = Resources.parse_limits(queue.capability)
    return Resources({n: min(amount, bound.get(n, amount)) for n, amount in cluster.items()})


@dataclass(frozen=True, slots=True)
class Capacity:
    """What nodes have. `bars`: the usage of each resource. `slots`: as `_free_slots` says.

    `free`: the total free amount of each resource, on nodes that are ready and not cordoned.
    """

    bars: Sequence[UsageBar]
    free: Sequence[str]
    slots: Sequence[dict[str, Any]]


def capacity(views: Sequence[NodeView]) -> Capacity:
    """What these nodes have together."""
    alike, ready = _alike(views), [view for view in views if view.node.is_ready and not view.node.is_cordoned]
    free = _total_free(alike if len(ready) == len(views) else _alike(ready))
    return Capacity(bars(*_sums(alike)), free, _free_slots(alike))


_Alike = Sequence[tuple["NodeView", int]]
"""Examples of the kinds of nodes, with the number of nodes of each."""


def _free_slots(alike: _Alike) -> list[dict[str, Any]]:
    """For each resource that counts cards: its name, and the number of nodes with at least 8, 4, 2 and 1 free ones."""
    resources = sorted({name for view, _count in alike for name in view.allocatable})
    return [{"unit": quota_messages.resource(name), "rows": _slots(alike, name)} for name in filter(is_card, resources)]


def _alike(views: Sequence[NodeView]) -> _Alike:
    """One of each kind of nodes, with their number: those with the same amounts, in use and in all.

    Equal amounts are the same mapping (`Resources`), so a cluster of thousands of nodes has few kinds.
    """
    kinds = [(id(view.used.amounts), id(view.allocatable.amounts)) for view in views]
    examples = dict(zip(kinds, views, strict=True))
    return [(examples[kind], count) for kind, count in Counter(kinds).items()]


def _slots(alike: _Alike, resource: str) -> list[dict[str, int]]:
    free = [(view.allocatable.amount(resource) - view.used.amount(resource), count) for view, count in alike]
    rows = [{"size": size, "nodes": sum(c for n, c in free if n >= size * 1000)} for size in (8, 4, 2, 1)]
    most = max(1, *(row["nodes"] for row in rows))
    return [row | {"most": most} for row in rows]


def together(views: Sequence[NodeView]) -> Sequence[UsageBar]:
    """The bars of all these nodes together."""
    return bars(*_sums(_alike(views)))


def _sums(alike: _Alike) -> tuple[Resources, Resources]:
    """What is in use of all these nodes, and what they have."""
    used, whole = defaultdict[str, float](float), defaultdict[str, float](float)
    for view, count in alike:
        for amounts, total in ((view.used, used), (view.allocatable, whole)):
            for name, amount in amounts.items():
                total[name] += amount * count
    return Resources(used), Resources(whole)


def _sum(parts: Iterable[Resources]) -> Resources:
    """The sum of these amounts. Those that are the same mapping, as equal ones are (`Resources`), are added at once."""
    amounts = [part.amounts for part in parts]
    known, whole = {id(one): one for one in amounts}, defaultdict[str, float](float)
    for identity, count in Counter(map(id, amounts)).items():
        for name, amount in known[identity].items():
            whole[name] += amount * count
    return Resources(whole)


def _total_free(alike: _Alike) -> list[str]:
    used, most = _sums(alike)
    free = {name: most.amount(name) - used.amount(name) for name in _names(most)}
    return [labels.amounts(Resources({name: amount})) for name, amount in free.items() if amount]
