"""What a run shows: a number, and the clause that says it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from hekla.apps.demonstrations.scenes import Demonstration, Measure
from hekla.apps.demonstrations.stage import GPU, CardMemory, LinkedCards
from hekla.domain.phases import PodPhase
from hekla.domain.resources import Resources
from hekla.pages.demonstrations.job_views import JobView
from hekla.pages.demonstrations.moments import HeldPod
from hekla.pages.demonstrations.rooms import pins

_MIB_PER_GIB = 1024
_MILLI = 1000


@dataclass(frozen=True, slots=True)
class RunResult:
    """The value of a measure, and a clause about it, in lower case and without a full stop."""

    value: int
    words: str


@dataclass(frozen=True, slots=True)
class Evidence:
    """A run whose jobs have all started. `held`: its pods at the instant that is drawn."""

    demonstration: Demonstration
    views: Sequence[JobView]
    held: Sequence[HeldPod]

    @property
    def subject(self) -> JobView:
        """The job that is measured."""
        return self.views[self.demonstration.subject_number - 1]

    def waited_seconds(self) -> int:
        """How long the subject waited from its submission to its start."""
        job = self.subject.job
        return round((job.started_at - job.submitted_at).total_seconds()) if job.started_at else 0


def finding(evidence: Evidence) -> RunResult | None:
    """What the run shows; None if some of its jobs were never submitted or started."""
    views = evidence.views
    if len(views) < len(evidence.demonstration.acts) or not all(view.job.started_at for view in views):
        return None
    return _MEASURES[evidence.demonstration.measure](evidence)


def _nodes(evidence: Evidence) -> RunResult:
    most = max(len(view.nodes) for view in evidence.views)
    words = ngettext("no job had pods on more than %(count)s node", "a job had pods on %(count)s nodes", most)
    return RunResult(most, words % {"count": most})


def _racks(evidence: Evidence) -> RunResult:
    area = {name: str(node.area) for name, node in evidence.demonstration.stage.named_nodes().items()}
    most = max(len({area.get(node, "") for node, _pods in view.nodes}) for view in evidence.views)
    words = ngettext("no job had pods in more than %(count)s rack", "a job had pods in %(count)s racks", most)
    return RunResult(most, words % {"count": most})


def _cells(evidence: Evidence) -> RunResult:
    widths = [0]
    for name, node in evidence.demonstration.stage.named_nodes().items():
        own = [pod for pod in evidence.held if pod.node == name]
        widths += (sum(map(bool, pinned)) for pinned in pins(node.cells, own))
    most = max(widths)
    words = ngettext("no pod had CPUs of more than %(count)s NUMA cell", "a pod had CPUs of %(count)s NUMA cells", most)
    return RunResult(most, words % {"count": most})


def _linked(evidence: Evidence) -> RunResult:
    nodes = evidence.demonstration.stage.named_nodes()
    count = 0
    for pod in evidence.held:
        groups = [set(part.cards) for part in nodes[pod.node].parts if isinstance(part, LinkedCards)]
        count += any({card["index"] for card in pod.cards} <= group for group in groups)
    words = _("%(count)s of %(all)s jobs had cards with a fast link")
    return RunResult(count, words % {"count": count, "all": len(evidence.views)})


def _card_memory(evidence: Evidence) -> RunResult:
    used: dict[tuple[str, int], int] = {}
    for pod in evidence.held:
        for card in pod.cards:
            key = pod.node, card["index"]
            used[key] = used.get(key, 0) + card["part_mib"]
    node = evidence.demonstration.stage.nodes[0]
    size = max(part.count * part.mebibytes for part in node.parts if isinstance(part, CardMemory)) // _MIB_PER_GIB
    most = max(used.values(), default=0) // _MIB_PER_GIB
    words = _("jobs held at most %(count)s of the %(all)s GiB of a card")
    return RunResult(most, words % {"count": most, "all": size})


def _ended(evidence: Evidence) -> RunResult:
    mine = evidence.subject.job
    others = [view.job for view in evidence.views if view.job != mine]
    ended = sum(
        other.finished_at is not None and mine.started_at is not None and other.finished_at <= mine.started_at
        for other in others
    )
    if ended:
        words = _("job %(job)s waited %(seconds)s s, until %(count)s of %(all)s other jobs had ended")
    else:
        words = _("job %(job)s waited %(seconds)s s and started before another job had ended")
    numbers = {"job": evidence.subject.number, "seconds": evidence.waited_seconds()}
    return RunResult(ended, words % (numbers | {"count": ended, "all": len(others)}))


def _rank(evidence: Evidence) -> RunResult:
    mine = evidence.subject.job
    starts = [view.job.started_at for view in evidence.views if view.job.started_at]
    rank = 1 + sum(mine.started_at is not None and start < mine.started_at for start in starts)
    words = _("job %(job)s waited %(seconds)s s and was number %(rank)s of %(all)s to start")
    numbers = {"job": evidence.subject.number, "seconds": evidence.waited_seconds()}
    return RunResult(rank, words % (numbers | {"rank": rank, "all": len(evidence.views)}))


def _held(evidence: Evidence) -> RunResult:
    number = evidence.subject.number
    count = round(sum(pod.request.amount(GPU) for pod in evidence.held if pod.number == number) / _MILLI)
    whole = round(_total(evidence.demonstration).amount(GPU) / _MILLI)
    words = _("job %(job)s had %(count)s of %(all)s GPUs")
    return RunResult(count, words % {"job": number, "count": count, "all": whole})


def _share(evidence: Evidence) -> RunResult:
    whole = _total(evidence.demonstration)
    shares = []
    for view in evidence.views:
        own = [pod.request for pod in evidence.held if pod.number == view.number]
        parts = (sum(request.amount(name) for request in own) / whole.amount(name) for name in whole)
        shares.append(round(100 * max(parts)))
    texts = [_("job %(job)s: %(share)s %%") % {"job": at, "share": share} for at, share in enumerate(shares, start=1)]
    return RunResult(min(shares), _("the dominant shares were %(shares)s") % {"shares": ", ".join(texts)})


def _total(demonstration: Demonstration) -> Resources:
    """What the nodes have together."""
    whole = Resources()
    for node in demonstration.stage.nodes:
        whole = whole + Resources.parse(node.amounts)
    return whole


def _at_data(evidence: Evidence) -> RunResult:
    nodes = evidence.demonstration.stage.named_nodes()
    there = everywhere = 0
    for view, act in zip(evidence.views, evidence.demonstration.acts, strict=False):
        for node, pods in view.nodes:
            everywhere += pods
            cached = nodes[node].more.get("annotations", {}).get("hekla.io/cached-datasets", "")
            there += pods * (act.annotations.get("hekla.io/datasets") in cached.split(","))
    words = _("%(count)s of %(all)s pods ran on nodes that cache their data")
    return RunResult(there, words % {"count": there, "all": everywhere})


def _until_end(evidence: Evidence) -> RunResult:
    nodes = evidence.demonstration.stage.named_nodes()
    lent = [
        pod for view in evidence.views for pod in view.pods if pod.node in nodes and "labels" in nodes[pod.node].more
    ]
    count = sum(pod.phase == PodPhase.SUCCEEDED and not pod.evicted for pod in lent)
    words = _("%(count)s of %(all)s pods in the zone stayed after the end of its hours")
    return RunResult(count, words % {"count": count, "all": len(lent)})


_MEASURES: Mapping[Measure, Callable[[Evidence], RunResult]] = {
    Measure.NODES: _nodes,
    Measure.RACKS: _racks,
    Measure.CELLS: _cells,
    Measure.LINKED: _linked,
    Measure.CARD_MEMORY: _card_memory,
    Measure.ENDED: _ended,
    Measure.RANK: _rank,
    Measure.HELD: _held,
    Measure.SHARE: _share,
    Measure.AT_DATA: _at_data,
    Measure.UNTIL_END: _until_end,
}
