"""Fill nodes before using new ones: the weighted used part of the requested resources (`volcano-spec` §5.6)."""

from functools import cache

import numpy as np

from hekla.engine.columns import Mask, Vector
from hekla.engine.extension_points import ExtensionPoint
from hekla.engine.inputs import Need
from hekla.engine.job_info import PodInfo
from hekla.engine.node_columns import Column, ColumnScorer, NodeColumns
from hekla.engine.policy import PluginOption
from hekla.engine.session import Session

NEEDS: tuple[Need, ...] = ()
LOOKS_AT_NODES_ONLY = True


def open_session(session: Session, option: PluginOption) -> None:
    """Score nodes, unless the plugin's weight is 0."""
    weight = option.whole("binpack.weight", 1)
    weights = _weights(session, option)
    if not weight:
        return

    factors = weights.tolist()

    def scorer(pod: PodInfo) -> ColumnScorer | None:
        requests = pod.request.tolist()
        return score_by(tuple(at for at, factor in enumerate(factors) if requests[at] > 0 and factor > 0))

    @cache
    def score_by(wanted: tuple[int, ...]) -> ColumnScorer | None:
        divisor = sum(factors[at] for at in wanted)

        def score(nodes: NodeColumns) -> Column:
            total: Column = 0.0
            overflows: bool | Mask = False
            for at in wanted:
                after, whole = nodes.used[at] + nodes.requests.amounts[at], nodes.allocatable[at]
                total = total + nodes.part(at, after, 0.0) * factors[at]
                overflows = overflows | (after > whole)
            return nodes.arithmetic.choose(overflows, 0.0, total / divisor * 100 * weight)  # type: ignore[no-any-return]

        return score if divisor else None

    session.register(ExtensionPoint.COLUMN_ORDER, option, scorer)


def _weights(session: Session, option: PluginOption) -> Vector:
    named = {"cpu": option.whole("binpack.cpu", 1), "memory": option.whole("binpack.memory", 1)}
    for name in str(option.arguments.get("binpack.resources", "")).split(","):
        if name.strip():
            named[name.strip()] = option.whole(f"binpack.resources.{name.strip()}", 1)
    return np.array([float(w if (w := named.get(name, 0)) >= 0 else 1) for name in session.dimensions.names])
