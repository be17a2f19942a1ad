"""Fill nodes before using new ones: the weighted used part of the requested resources (`volcano-spec` §5.6)."""

import numpy as np

from hekla.engine.columns import NodeResources, Vector, fractions
from hekla.engine.extension_points import ExtensionPoint
from hekla.engine.inputs import Need
from hekla.engine.job_info import PodInfo
from hekla.engine.node_fit import ResourceScorer
from hekla.engine.policy import PluginOption
from hekla.engine.session import Session

NEEDS: tuple[Need, ...] = ()


def open_session(session: Session, option: PluginOption) -> None:
    """Score nodes, unless the plugin's weight is 0."""
    weight = option.whole("binpack.weight", 1)
    weights = _weights(session, option)
    if not weight:
        return

    def scorer(pod: PodInfo) -> ResourceScorer | None:
        wanted = (pod.request > 0) & (weights > 0)
        request, factors, divisor = pod.request[wanted], weights[wanted], weights[wanted].sum()

        def score(resources: NodeResources) -> Vector:
            whole = resources.allocatable[:, wanted]
            after = resources.used[:, wanted] + request
            total: Vector = (fractions(after, whole, otherwise=0.0) * factors).sum(axis=1) / divisor * 100 * weight
            return np.where((after > whole).any(axis=1), 0.0, total)

        return score if divisor else None

    session.register(ExtensionPoint.USE_ORDER, option, scorer)


def _weights(session: Session, option: PluginOption) -> Vector:
    named = {"cpu": option.whole("binpack.cpu", 1), "memory": option.whole("binpack.memory", 1)}
    for name in str(option.arguments.get("binpack.resources", "")).split(","):
        if name.strip():
            named[name.strip()] = option.whole(f"binpack.resources.{name.strip()}", 1)
    return np.array([float(w if (w := named.get(name, 0)) >= 0 else 1) for name in session.dimensions.names])
