"""Workloads from files of other schedulers, each read by a module of this package into the one form of `lab.workload`.

Files are hostile: sizes, rows and numbers are bounded, and what cannot be read is counted and left out.
"""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import BinaryIO

from hekla.engine.model import NodeSpec
from hekla.simulation.lab.importers import alibaba, helios, philly, slurm
from hekla.simulation.lab.importers.traces import InvalidTrace, TraceJob, TraceNotes, trace_workload
from hekla.simulation.lab.workload import Workload

__all__ = ["FORMATS", "InvalidTrace", "read_trace"]

Reader = Callable[[BinaryIO, TraceNotes], Sequence[TraceJob]]
FORMATS: Mapping[str, Reader] = MappingProxyType(
    {
        "sacct": slurm.read,
        "helios": helios.read,
        "philly": philly.read,
        "alibaba": alibaba.read,
    }
)
"""By name: `sacct --parsable2`; HeliosData's `cluster_log.csv`; Philly's `cluster_job_log`; Alibaba's
`openb_pod_list` of 2023.
"""


def read_trace(file: BinaryIO, form: str, nodes: Sequence[NodeSpec]) -> Workload:
    """The workload of a file in one of the `FORMATS`, on these nodes. Raises InvalidTrace."""
    notes = TraceNotes()
    return trace_workload(FORMATS[form](file, notes), nodes, notes)
