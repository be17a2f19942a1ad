"""Job plugins: how the pods of one job learn about one another, in the way that their framework expects.

Each is a `Framework`: a name, its options, and a pure function from a pod's place in the job to environment variables,
files and host names. A package of one's own adds one by an entry point in the group `hekla.frameworks`.
"""

from hekla.domain.frameworks.base import Framework, Option, PodContext, PodSettings
from hekla.domain.frameworks.registry import (
    check,
    commands,
    files,
    load_frameworks,
    remarks,
    scaling_remarks,
    settings_for,
    shares_addresses,
)

__all__ = [
    "Framework",
    "Option",
    "PodContext",
    "PodSettings",
    "check",
    "commands",
    "files",
    "load_frameworks",
    "remarks",
    "scaling_remarks",
    "settings_for",
    "shares_addresses",
]
