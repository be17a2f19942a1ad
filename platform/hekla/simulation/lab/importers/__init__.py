"""Workloads from files of other schedulers, each read by a module of this package into the one form of `lab.workload`.

Files are hostile: sizes, rows and numbers are bounded, and what cannot be read is counted and left out.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import BinaryIO

from hekla.engine.model import NodeSpec
from hekla.simulation.lab.importers import alibaba, helios, philly, slurm
from hekla.simulation.lab.importers.traces import (
    InvalidTrace,
    NothingFits,
    TraceJob,
    TraceNotes,
    checked_queues,
    trace_workload,
)
from hekla.simulation.lab.workload import SECOND, Workload

__all__ = ["FORMATS", "InvalidTrace", "NothingFits", "TraceFacts", "examine", "read_trace"]

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


@dataclass(frozen=True, slots=True)
class TraceFacts:
    """What is in a file. `starts`, `ends`: of the submissions, in milliseconds. `notes`, `first_unreadable`: see
    `TraceNotes`.
    """

    jobs: int
    pods: int
    starts: int
    ends: int
    queues: tuple[str, ...]
    notes: Mapping[str, int]
    first_unreadable: int


def examine(file: BinaryIO, form: str) -> TraceFacts:
    """What is in a file in one of the `FORMATS`, before it is known where its jobs will run. Raises InvalidTrace."""
    notes = TraceNotes()
    jobs = FORMATS[form](file, notes)
    queues, times = checked_queues(jobs, notes), [job.submitted for job in jobs]
    counts = {str(note): count for note, count in notes.counts.items()}
    pods = sum(job.pods for job in jobs)
    return TraceFacts(len(jobs), pods, min(times), max(times) + SECOND, tuple(queues), counts, notes.first_unreadable)
