"""Job plugins: how the pods of one job learn about one another, in the way that their framework expects.

Each is a `Framework`: a name, its options, and a pure function from a pod's place in the job to environment variables,
files and host names. A package of one's own adds one by an entry point in the group `hekla.frameworks`.
"""

from hekla.domain.frameworks.base import Framework, Option, Place, PodSettings
from hekla.domain.frameworks.registry import (
    check,
    commands,
    files,
    known,
    remarks,
    scaling_remarks,
    settings_for,
    tell_addresses,
)

__all__ = [
    "Framework",
    "Option",
    "Place",
    "PodSettings",
    "check",
    "commands",
    "files",
    "known",
    "remarks",
    "scaling_remarks",
    "settings_for",
    "tell_addresses",
]
