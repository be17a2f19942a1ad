"""Cards within a node: parts of a card's memory, whole cards, or virtual cards (`volcano-spec` §5.7).

A node is feasible only if its cards have room. The bind writes a pod's cards to its annotations, and the next cycle
reads them from there. Cards are free again when the pod is gone or evicted. Pods with the labels of one of the rules
(`deviceshare.GPUExclusiveRules`, a list of mappings) never share a virtual card with each other.

Cards with MIG are allocated by instance (`mig`).

Beyond Volcano: the node annotation `hekla.io/gpu-links` may give the link strength of each pair of cards, as a JSON
matrix. Then the best linked cards are chosen (`links`), and nodes score by the links of these cards, with weight
`deviceshare.LinkWeight` (1). For a pod on a node that requests cards and has no annotation with them, Volcano counts
none; here it is assumed to hold the cards that it would get. Where parts of cards are given (`GPUSharingEnable`), no
pod gets whole ones (`gpu-number`): Volcano counts them apart, and gives a card as a whole that others share.
"""

from collections.abc import Callable

import numpy as np

from hekla.domain.scheduling_inputs import Input
from hekla.domain.translation import gettext_noop
from hekla.engine.columns import NodeTable, Rows, Vector
from hekla.engine.extension_points import ExtensionPoint
from hekla.engine.inputs import Lack, Need
from hekla.engine.job_info import PodInfo
from hekla.engine.model import PodStatus
from hekla.engine.node_fit import ALL_ROWS, Refusal
from hekla.engine.plugins.deviceshare import annotations
from hekla.engine.plugins.deviceshare.cards import CardSlice, CardTable
from hekla.engine.plugins.deviceshare.inventory import LINKS, REGISTER, UNHEALTHY
from hekla.engine.plugins.deviceshare.mig import allowed_geometries
from hekla.engine.plugins.deviceshare.requests import NO_CARDS, CardRequest, Mode, card_request, exclusive_rules
from hekla.engine.policy import PluginOption
from hekla.engine.session import Session

_POLICIES = ("binpack", "spread")
NODE_ANNOTATIONS = (UNHEALTHY, REGISTER, LINKS)

NEEDS = (
    Need(
        Input.NODE_ANNOTATIONS,
        Lack.REFUSES_SOME,
        gettext_noop("No node has virtual cards: jobs that request some do not start."),
        lambda option, _policy: _mode(option) is Mode.VIRTUAL,
    ),
    Need(
        Input.NODE_ANNOTATIONS,
        Lack.PART,
        gettext_noop("All cards count as healthy and as equally well linked."),
        lambda option, _policy: _mode(option) in (Mode.SHARING, Mode.NUMBER),
    ),
    Need(
        Input.POD_CARDS,
        Lack.FALLBACK,
        gettext_noop("The cards of running pods are assumed."),
        lambda option, policy: _mode(option) is not None and not policy.follows_volcano,
    ),
    Need(
        Input.POD_CARDS,
        Lack.WRONG,
        gettext_noop("The cards of running pods count as free."),
        lambda option, policy: _mode(option) is not None and policy.follows_volcano,
    ),
    Need(
        Input.POD_ANNOTATIONS,
        Lack.PART,
        gettext_noop("Jobs cannot choose a type of card."),
        lambda option, _policy: _mode(option) is Mode.VIRTUAL,
    ),
    Need(
        Input.POD_LIMITS,
        Lack.PART,
        gettext_noop("The cards of all containers of a pod count together."),
        lambda option, _policy: _mode(option) is not None,
    ),
    Need(
        Input.POD_LABELS,
        Lack.PART,
        gettext_noop("The argument deviceshare.GPUExclusiveRules has no effect."),
        lambda option, _policy: bool(exclusive_rules(option.arguments.get("deviceshare.GPUExclusiveRules"))),
    ),
)


def open_session(session: Session, option: PluginOption) -> None:
    """Allocate cards in the mode that is switched on; without one, register nothing."""
    mode = _mode(option)
    if mode is None:
        return
    shared = _DeviceShare(session, option, mode)
    session.on_change.append(shared.update)
    session.register(ExtensionPoint.TASK_CLASS, option, shared.request_of)
    session.register(ExtensionPoint.PREDICATE, option, shared.static_refusals)
    session.register(ExtensionPoint.CHANGING_PREDICATE, option, shared.current_refusals)
    session.register(ExtensionPoint.WIDE_NODE_ORDER, option, shared.scorer)


def _mode(option: PluginOption) -> Mode | None:
    """The mode that is switched on."""
    return next((mode for mode in Mode if option.truth(f"deviceshare.{mode.value}", default=False)), None)


class _DeviceShare:
    """The cards, and which pods hold them."""

    def __init__(self, session: Session, option: PluginOption, mode: Mode) -> None:
        self._session, self._mode = session, mode
        self._rules = exclusive_rules(option.arguments.get("deviceshare.GPUExclusiveRules"))
        policy = str(option.arguments.get("deviceshare.SchedulePolicy", ""))
        self._policy = policy if policy in _POLICIES else ""
        self._weight = option.number("deviceshare.ScheduleWeight", 0) if self._policy else 0.0
        geometries = allowed_geometries(option.arguments.get("deviceshare.knownMigGeometries"))
        self._link_weight = option.number("deviceshare.LinkWeight", 1)
        self._table = CardTable(session.table.nodes, mode, self._policy, geometries)
        self._requests: dict[str, CardRequest] = {}
        self._held: dict[str, list[list[CardSlice]]] = {}
        self._evicted: dict[str, list[list[CardSlice]]] = {}
        """The slices of evicted pods, in case the eviction is undone."""
        for row, residents in enumerate(session.node_pods):
            for uid in sorted(residents):
                self._load(residents[uid], row)

    def request_of(self, pod: PodInfo) -> CardRequest:
        """The pod's card request."""
        request = self._requests.get(pod.spec.uid)
        if request is None:
            request = self._requests[pod.spec.uid] = card_request(pod.spec, self._mode, self._rules)
        return request

    def _load(self, pod: PodInfo, row: int) -> None:
        request = self.request_of(pod)
        if request is NO_CARDS:
            return
        slices = annotations.from_annotations(pod.spec.annotations, request, self._table.cards[row], self._mode)
        if slices is None and not self._session.policy.follows_volcano:
            slices = self._table.choose(request, row)
        if slices is not None:
            self._hold(pod, row, slices)

    def _hold(self, pod: PodInfo, row: int, slices: list[list[CardSlice]]) -> None:
        for one in slices:
            self._table.allocate(row, one, self.request_of(pod))
        self._held[pod.spec.uid] = slices

    def update(self, pod: PodInfo, row: int, sign: int) -> None:
        """Allocate or release cards after a pod was placed (sign 1) or removed (-1)."""
        request = self.request_of(pod)
        if request is NO_CARDS:
            return
        if sign < 0:
            self._free(pod, row)
        elif pod.status is PodStatus.RUNNING:
            if pod.spec.uid in self._evicted:
                self._hold(pod, row, self._evicted.pop(pod.spec.uid))
        elif (slices := self._table.choose(request, row)) is not None:
            self._hold(pod, row, slices)
            self._session.bind_annotations[pod.spec.uid] = annotations.to_annotations(
                slices, self._table.cards[row], self._session.table.nodes[row].name, self._session.now, self._mode
            )

    def _free(self, pod: PodInfo, row: int) -> None:
        uid = pod.spec.uid
        slices = self._held.pop(uid, None)
        self._session.bind_annotations.pop(uid, None)
        for one in slices or ():
            self._table.allocate(row, one, self.request_of(pod), -1)
        if slices is not None and pod.status is PodStatus.RELEASING:
            self._evicted[uid] = slices

    # Registered functions.

    def static_refusals(self, pod: PodInfo, _table: NodeTable) -> list[Refusal]:
        """Refuse nodes whose cards could not serve the pod even if all were free."""
        request, is_ours = self.request_of(pod), not self._session.policy.follows_volcano
        if self._mode is Mode.SHARING and is_ours and card_request(pod.spec, Mode.NUMBER) is not NO_CARDS:
            return [Refusal(np.ones(len(self._table.cards), dtype=bool), "GPUs are shared")]
        return (
            []
            if request is NO_CARDS
            else [Refusal(~self._table.fits(request, ALL_ROWS, when_empty=True), "no such GPU")]
        )

    def current_refusals(self, pod: PodInfo, _table: NodeTable) -> Callable[[Rows], list[Refusal]] | None:
        """Refuse nodes whose cards have no room for the pod now."""
        request = self.request_of(pod)

        def refusals(rows: Rows) -> list[Refusal]:
            return [Refusal(~self._table.fits(request, rows), "no GPU with room", is_unresolvable=False)]

        return None if request is NO_CARDS else refusals

    def scorer(self, pod: PodInfo, _table: NodeTable) -> Callable[[Rows], Vector] | None:
        """Score nodes by policy and by the links of the cards that they would give."""
        request = self.request_of(pod)
        if request is NO_CARDS:
            return None
        by_links = self._link_weight if self._table.has_links and request.shares[0].count > 1 else 0.0

        def score(rows: Rows) -> Vector:
            total: Vector = np.zeros(len(self._table.cards))[rows]
            total += self._weight * self._table.scores(request, rows) if self._weight else 0.0
            total += by_links * self._table.link_scores(request, rows) if by_links else 0.0
            return total

        return _CachedScores(self._table, score).scores if self._weight or by_links else None


class _CachedScores:
    """Scores of all rows, recomputed only for rows whose cards changed."""

    def __init__(self, table: CardTable, score: Callable[[Rows], Vector]) -> None:
        self._table, self._score = table, score
        self._scores, self._log_position = score(ALL_ROWS), len(table.change_log)

    def scores(self, rows: Rows) -> Vector:
        """The scores of these rows."""
        if self._log_position < len(self._table.change_log):
            changed = np.unique(np.array(self._table.change_log[self._log_position :], dtype=np.intp))
            self._scores[changed], self._log_position = self._score(changed), len(self._table.change_log)
        return self._scores[rows]
