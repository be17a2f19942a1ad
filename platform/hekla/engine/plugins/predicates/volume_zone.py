"""VolumeZone: a bound volume with zone labels is only reached from nodes of its zone.

Nodes without any zone label are not asked. A volume's label may name several zones, divided by two underscores.
"""

from collections.abc import Iterator

import numpy as np

from hekla.engine.conditions import Requirement
from hekla.engine.gangs import Member
from hekla.engine.places import Refusal
from hekla.engine.session import Session

_ZONES = (
    "topology.kubernetes.io/zone", "topology.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/region",
)  # fmt: skip


def refusals(session: Session, member: Member) -> Iterator[Refusal]:
    """Refuse nodes of other zones."""
    nodes, storage = session.nodes, session.storage
    volumes = {storage.claims[claim].volume for claim in member.task.conditions.claims if claim in storage.claims}
    for volume in (volume for volume in storage.volumes if volume.name in volumes):
        for key in (key for key in _ZONES if key in volume.labels):
            there = nodes.matching(Requirement(key, "In", tuple(volume.labels[key].split("__"))))
            zoned = np.logical_or.reduce([nodes.domain(label).has for label in _ZONES])
            yield Refusal(zoned & ~there, "volume in another zone")
