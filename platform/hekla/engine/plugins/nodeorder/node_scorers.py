"""Scorers by the node alone: node affinity, taints, images; and the scaling of scores."""

from collections.abc import Callable

import numpy as np

from hekla.engine.columns import Mask, Rows, Vector
from hekla.engine.job_info import PodInfo
from hekla.engine.node_columns import ColumnScorer, NodeColumns
from hekla.engine.node_index import is_tolerated
from hekla.engine.session import Session

MAX_NODE_SCORE = 100


def normalized(raw: Vector) -> Vector:
    """Scores scaled so that the largest becomes 100; zeros stay 0."""
    most = raw.max(initial=0)
    scaled: Vector = np.floor_divide(raw * MAX_NODE_SCORE, most) if most > 0 else np.zeros(len(raw))
    return scaled


def spread_normalized(raw: Vector) -> Vector:
    """Scores scaled so that the smallest becomes 0 and the largest 100; all 0 if all are equal."""
    least, most = (raw.min(), raw.max()) if len(raw) else (0.0, 0.0)
    if least == most:
        return np.zeros(len(raw))
    scaled: Vector = np.floor(MAX_NODE_SCORE * ((raw - least) / (most - least)))
    return scaled


def node_affinity(session: Session, pod: PodInfo) -> Callable[[Rows], Vector] | None:
    """NodeAffinity: the sum of the weights of matching preferred terms; the best nodes become 100."""
    terms = pod.spec.constraints.preferred_node_terms
    if not terms:
        return None
    raw: Vector = np.zeros(len(session.table))
    for weight, term in terms:
        raw += weight * session.node_index.matching_term(term)
    return lambda rows: normalized(raw[rows])


_EFFECT = "PreferNoSchedule"


def equal_taints(session: Session, pod: PodInfo) -> ColumnScorer | None:
    """TaintToleration if no taint matters: 100 for every node, with nothing to compare."""
    return None if _untolerated(session, pod) else _full_score


def _full_score(_nodes: NodeColumns) -> float:
    return float(MAX_NODE_SCORE)


def taints(session: Session, pod: PodInfo) -> Callable[[Rows], Vector] | None:
    """TaintToleration: the nodes with most untolerated PreferNoSchedule taints become 0."""
    untolerated = _untolerated(session, pod)
    if not untolerated:
        return None
    raw: Vector = np.sum(untolerated, axis=0, dtype=float)
    return lambda rows: MAX_NODE_SCORE - normalized(raw[rows])


def _untolerated(session: Session, pod: PodInfo) -> list[Mask]:
    """The rows with each taint that matters."""
    able = [toleration for toleration in pod.spec.tolerations if toleration.effect in ("", _EFFECT)]
    taints = session.node_index.taints.items()
    return [rows for taint, rows in taints if taint.effect == _EFFECT and not is_tolerated(taint, able)]


_LEAST = 23 * 1024 * 1024
_MOST_PER_CONTAINER = 1000 * 1024 * 1024


def images(session: Session, pod: PodInfo) -> Callable[[Rows], Vector] | None:
    """ImageLocality: nodes that have the pod's images, by size and by how many nodes have them.

    0 up to 23 MB, 100 from 1000 MB per container.
    """
    wanted = pod.spec.constraints.images
    worths = [w for image in wanted if (w := session.node_index.image_worth(full_name(image))) is not None]
    if not worths:
        return None
    raw: Vector = np.sum(worths, axis=0)
    most = _MOST_PER_CONTAINER * len(wanted)
    scores: Vector = np.floor_divide(MAX_NODE_SCORE * (np.clip(raw, _LEAST, most) - _LEAST), most - _LEAST)
    return scores.__getitem__ if scores.any() else None


def full_name(image: str) -> str:
    """The image with its tag."""
    return image if ":" in image.rpartition("/")[2] else f"{image}:latest"
