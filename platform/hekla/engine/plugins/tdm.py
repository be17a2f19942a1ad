"""Time division: nodes that the cluster may use only during some hours of the day (`volcano-spec` §5.5).

A node with the label `volcano.sh/revocable-zone` belongs to a zone. The argument `tdm.revocable-zone.<zone>` gives its
window (`22:00-06:00`, in UTC). During the window, revocable pods may run there, and score higher there. Afterwards they
are evicted, as many at a time as the disruption budget of their job allows.

In Volcano a window is anchored at today's start, so an overnight window is closed after midnight. Here it is open until
its end, unless the policy follows Volcano.
"""

import re
from collections.abc import Callable, Sequence

import numpy as np

from hekla.domain.scheduling_inputs import Input
from hekla.domain.translation import gettext_noop
from hekla.engine import disruption_budgets
from hekla.engine.columns import NodeTable, Rows, Vector
from hekla.engine.extension_points import ExtensionPoint, Vote
from hekla.engine.inputs import Lack, Need
from hekla.engine.job_info import JobInfo, PodInfo
from hekla.engine.model import PodStatus
from hekla.engine.node_fit import Refusal
from hekla.engine.policy import PluginOption
from hekla.engine.session import Session
from hekla.lib.durations import seconds

_ZONE = "volcano.sh/revocable-zone"
_PREEMPTABLE = "volcano.sh/preemptable"
_ARGUMENT = "tdm.revocable-zone."
_WINDOW = re.compile(r"([01]?\d|2[0-3]):([0-5]\d)-([01]?\d|2[0-3]):([0-5]\d)", re.ASCII)
_DAY, _HOUR, _MINUTE = 86_400, 3_600, 60
_LIKED = 100.0

READS_CLOCK = True
NEEDS = (
    Need(Input.NODE_LABELS, Lack.PART, gettext_noop("No node has hours.")),
    Need(Input.POD_ANNOTATIONS, Lack.PART, gettext_noop("No pod may use nodes with hours.")),
    Need(Input.JOB_ANNOTATIONS, Lack.FALLBACK, gettext_noop("Each job may lose one pod at a time.")),
    Need(
        Input.SHUFFLE_TIME,
        Lack.WRONG,
        gettext_noop("It evicts pods in every cycle instead of once per period."),
        lambda _option, policy: "shuffle" in policy.actions,
    ),
)


def open_session(session: Session, option: PluginOption) -> None:
    """Reserve zone nodes for revocable pods, and evict the pods when the window ends."""
    zones = _Zones(session, option)
    session.register(ExtensionPoint.TASK_CLASS, option, _is_revocable)
    session.register(ExtensionPoint.PREDICATE, option, zones.refusals)
    session.register(ExtensionPoint.WIDE_NODE_ORDER, option, zones.scorer)
    session.register(ExtensionPoint.JOB_ORDER, option, lambda job: job.group.preemptable)
    session.register(ExtensionPoint.JOB_PIPELINED, option, lambda g: Vote.PERMIT if g.is_pipelined else Vote.REJECT)
    session.register(ExtensionPoint.JOB_STARVING, option, _is_starving)
    session.register(ExtensionPoint.PREEMPTABLE, option, zones.preemptable)
    session.register(ExtensionPoint.SPARED, option, lambda _pod, candidates: _beyond_budget(candidates))
    session.register(ExtensionPoint.VICTIM_TASKS, option, zones.overdue)


def is_open(window: str, now: float, *, follows_volcano: bool) -> bool:
    """Whether a window is open at this second; an invalid one never is. Equal start and end mean all day."""
    match = _WINDOW.fullmatch(window.strip())
    if not match:
        return False
    start, end = (int(match[at]) * _HOUR + int(match[at + 1]) * _MINUTE for at in (1, 3))
    second = now % _DAY
    if start < end:
        return start <= second < end
    return second >= start or (second < end and not follows_volcano)


class _Zones:
    """The zones, and which of them are open now."""

    def __init__(self, session: Session, option: PluginOption) -> None:
        self._session, self._follows = session, session.policy.follows_volcano
        windows = {name.removeprefix(_ARGUMENT): str(text) for name, text in option.arguments.items()
                   if name.startswith(_ARGUMENT)}  # fmt: skip
        self._open = {name: is_open(text, session.now, follows_volcano=self._follows)
                      for name, text in windows.items()}  # fmt: skip
        self._period = seconds(str(option.arguments.get("tdm.evict.period", ""))) or _MINUTE
        of_nodes = [node.labels.get(_ZONE, "") for node in session.table.nodes]
        self._of_nodes = of_nodes
        self._is_lent = np.array([bool(zone) for zone in of_nodes], dtype=bool)
        self._is_closed = np.array([bool(zone) and not self._open.get(zone) for zone in of_nodes], dtype=bool)

    def refusals(self, pod: PodInfo, _table: NodeTable) -> Sequence[Refusal]:
        """Refuse nodes of closed zones to all pods, and zone nodes to pods that are not revocable."""
        refusals = [Refusal(self._is_closed, "revocable zone is closed", is_lasting=False)]
        if not _is_revocable(pod):
            refusals.append(Refusal(self._is_lent, "for revocable tasks only"))
        return refusals

    def scorer(self, pod: PodInfo, _table: NodeTable) -> Callable[[Rows], Vector] | None:
        """Score nodes of open zones higher for revocable pods."""
        liked = np.where(self._is_lent & ~self._is_closed, _LIKED, 0.0)
        return liked.__getitem__ if _is_revocable(pod) and liked.any() else None

    def preemptable(self, pod: PodInfo, candidates: Sequence[PodInfo]) -> list[PodInfo]:
        """Victims for a pod that is not preemptable or revocable: running preemptable pods outside zones.

        As many of each job as its disruption budget allows.
        """
        if pod.spec.preemptable or _is_revocable(pod):
            return []
        own = [m for m in candidates if m.status is PodStatus.RUNNING and m.spec.preemptable and not self._zone(m)]
        return disruption_budgets.within_budget(own, follows_volcano=self._follows)

    def overdue(self, running: Sequence[PodInfo]) -> list[PodInfo]:
        """The pods to evict from closed zones, once per period.

        Volcano applies the budget of a job anew for each of its zones.
        """
        last = self._session.state.last_shuffle_at
        if last is not None and self._session.now < last + self._period:
            return []
        late = [m for m in running if m.spec.preemptable and self._open.get(self._zone(m)) is False]
        if not self._follows:
            return disruption_budgets.within_budget(late, follows_volcano=False)
        zones = dict.fromkeys(self._zone(pod) for pod in late)
        return [
            m for zone in zones for m in disruption_budgets.within_budget(self._in(zone, late), follows_volcano=True)
        ]

    def _in(self, zone: str, pods: Sequence[PodInfo]) -> list[PodInfo]:
        return [pod for pod in pods if self._zone(pod) == zone]

    def _zone(self, pod: PodInfo) -> str:
        row = self._session.table.row_of.get(pod.node)
        return "" if row is None else self._of_nodes[row]


def _is_revocable(pod: PodInfo) -> bool:
    """Whether the pod's annotations make it revocable, or preemptable."""
    annotations = pod.spec.annotations
    return annotations.get(_ZONE) == "*" or annotations.get(_PREEMPTABLE, "").lower() == "true"


def _is_starving(job: JobInfo) -> bool:
    return not job.group.preemptable and bool(job.count_by_status[PodStatus.PENDING])


def _beyond_budget(candidates: Sequence[PodInfo]) -> list[PodInfo]:
    """The pods that explicit budgets of their jobs protect."""
    bound = [pod for pod in candidates if pod.status is PodStatus.RUNNING and disruption_budgets.has_budget(pod.job)]
    borne = {pod.spec.uid for pod in disruption_budgets.within_budget(bound, follows_volcano=False)}
    return [pod for pod in bound if pod.spec.uid not in borne]
