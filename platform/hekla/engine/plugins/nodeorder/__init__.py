"""Scores nodes with Kubernetes' scorers of the same names (`volcano-spec` §5.6).

Each scorer returns whole numbers from 0 to 100, times its weight `<name>.weight`; weight 0 disables it. Some compare
the candidate nodes with each other and scale the best to 100.
"""

from collections.abc import Callable
from functools import cache
from typing import TypeVar

from hekla.domain.scheduling_inputs import Input
from hekla.domain.translation import gettext_noop
from hekla.engine.columns import Rows
from hekla.engine.extension_points import ExtensionPoint
from hekla.engine.inputs import Lack, Need, has_weight
from hekla.engine.job_info import PodInfo
from hekla.engine.node_columns import Column, NodeColumns
from hekla.engine.plugins.nodeorder import node_scorers, pod_scorers, resources
from hekla.engine.policy import PluginOption
from hekla.engine.session import Session

_About = TypeVar("_About", NodeColumns, Rows)
_Factory = Callable[[Session, PodInfo], Callable[[_About], Column] | None]
_Weighted = list[tuple[int, _Factory[_About]]]
_Scorers = tuple[tuple[int, Callable[[_About], Column]], ...]
_BY_AFFINITY = ("nodeaffinity", "podaffinity", "podtopologyspread")

LOOKS_AT_NODES_ONLY = True
NEEDS = (
    Need(
        Input.NODE_IMAGES,
        Lack.PART,
        gettext_noop("Nodes that have the images of a job score no higher."),
        has_weight("imagelocality.weight", 1),
    ),
    Need(
        Input.POD_IMAGES,
        Lack.PART,
        gettext_noop("Nodes that have the images of a job score no higher."),
        has_weight("imagelocality.weight", 1),
    ),
    Need(
        Input.NODE_TAINTS,
        Lack.PART,
        gettext_noop("Nodes with taints to avoid score no lower."),
        has_weight("tainttoleration.weight", 3),
    ),
    Need(
        Input.TOLERATIONS,
        Lack.PART,
        gettext_noop("No job can tolerate a taint."),
        has_weight("tainttoleration.weight", 3),
    ),
    Need(
        Input.NODE_LABELS,
        Lack.PART,
        gettext_noop("Jobs cannot prefer nodes, other jobs or an even spread."),
        lambda option, _policy: _uses_affinity(option),
    ),
    Need(
        Input.AFFINITY,
        Lack.PART,
        gettext_noop("Jobs cannot prefer nodes, other jobs or an even spread."),
        lambda option, _policy: _uses_affinity(option),
    ),
)


def open_session(session: Session, option: PluginOption) -> None:
    """Score nodes."""

    def weighted(scorers: dict[str, tuple[int, _Factory[_About]]]) -> _Weighted[_About]:
        found = ((option.whole(f"{name}.weight", default), factory) for name, (default, factory) in scorers.items())
        return [(weight, factory) for weight, factory in found if weight]

    resources.count_surplus(session)
    alone: _Weighted[NodeColumns] = weighted({
        "leastrequested": (1, resources.least),
        "mostrequested": (0, resources.most),
        "balancedresource": (1, resources.balanced),
        "tainttoleration": (3, node_scorers.equal_taints),
    })  # fmt: skip
    compared: _Weighted[Rows] = weighted({
        "imagelocality": (1, node_scorers.images),
        "nodeaffinity": (2, node_scorers.node_affinity),
        "podaffinity": (2, pod_scorers.PodAffinityScorer(session).score),
        "tainttoleration": (3, node_scorers.taints),
        "podtopologyspread": (2, pod_scorers.topology_spread),
    })  # fmt: skip
    same_sum = cache(_sum)  # classes with the same function are scored together
    session.register(ExtensionPoint.COLUMN_ORDER, option, lambda pod: same_sum(_scorers(session, pod, alone)))
    session.register(ExtensionPoint.WIDE_NODE_ORDER, option, lambda pod, _table: _sum(_scorers(session, pod, compared)))


def _uses_affinity(option: PluginOption) -> bool:
    return any(option.whole(f"{name}.weight", 2) for name in _BY_AFFINITY)


def _scorers(session: Session, pod: PodInfo, weighted: _Weighted[_About]) -> _Scorers[_About]:
    return tuple([(weight, scorer) for weight, factory in weighted if (scorer := factory(session, pod)) is not None])


def _sum(scorers: _Scorers[_About]) -> Callable[[_About], Column] | None:
    def total(about: _About) -> Column:
        found: Column = 0.0
        for weight, scorer in scorers:
            found = found + weight * scorer(about)
        return found

    return total if scorers else None
