"""Job plugins: they configure the pods of a distributed job as its framework (PyTorch, MPI, Ray …) expects.

Each is a `Framework`: a name, options, and a pure function from `PodContext` and options to `PodSettings`. Other
packages add plugins by the entry point group `hekla.frameworks`.
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
