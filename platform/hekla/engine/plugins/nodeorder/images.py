"""ImageLocality: nodes that have the pod's images already, by size and by how many nodes have them."""

from collections.abc import Callable

import numpy as np

from hekla.engine.columns import Rows, Vector
from hekla.engine.gangs import Member
from hekla.engine.plugins.nodeorder.scale import BEST
from hekla.engine.session import Session

_LEAST = 23 * 1024 * 1024
_MOST_PER_CONTAINER = 1000 * 1024 * 1024


def local(session: Session, member: Member) -> Callable[[Rows], Vector] | None:
    """Nothing below 23 MB, 100 from 1000 MB a container."""
    wanted = member.task.conditions.images
    raw = sum((_worth(session, full_name(image)) for image in wanted), np.zeros(len(session.table)))
    if not raw.any():
        return None
    most = _MOST_PER_CONTAINER * len(wanted)
    scores: Vector = np.floor_divide(BEST * (np.clip(raw, _LEAST, most) - _LEAST), most - _LEAST)
    return lambda rows: scores[rows]


def full_name(image: str) -> str:
    """The image with its tag."""
    return image if ":" in image.rpartition("/")[2] else f"{image}:latest"


def _worth(session: Session, image: str) -> Vector:
    """Its size where it is, less the rarer it is, so that one node does not draw all pods."""
    sizes: Vector = np.array([node.images.get(image, 0.0) for node in session.table.nodes])
    has = sizes > 0
    worth: Vector = np.floor(sizes * (has.sum() / max(len(sizes), 1)))
    return worth
