"""HeliosData (SenseTime): `cluster_log.csv`, one line a job, with the cards, CPUs and nodes of the whole job.

Memory is not recorded, so jobs request none. Lines without cards are jobs on CPUs.
"""

from collections.abc import Mapping, Sequence
from typing import BinaryIO

from hekla.simulation.lab.importers.traces import (
    MAX_PODS_OF_A_JOB,
    TraceAttempt,
    TraceJob,
    TraceNotes,
    name_of,
    number_of,
    per_pod,
    table,
    time_of,
    too_many_jobs,
)
from hekla.simulation.lab.workload import MAX_JOBS, SECOND, WorkloadNote

_NEEDED = ("job_id", "user", "vc", "gpu_num", "cpu_num", "node_num", "state", "submit_time", "start_time", "end_time")
_MAX_SECONDS = 1e9


def read(file: BinaryIO, notes: TraceNotes) -> Sequence[TraceJob]:
    """The jobs of the file. Raises InvalidTrace."""
    found: list[TraceJob] = []
    for row in table(file, ",", _NEEDED, notes):
        try:
            found.append(_job(row, notes))
        except (ValueError, OverflowError):
            notes.add(WorkloadNote.UNREADABLE)
        if len(found) > MAX_JOBS:
            raise too_many_jobs()
    return found


def _job(row: Mapping[str, str], notes: TraceNotes) -> TraceJob:
    submitted, start, end = (time_of(row[name], notes) for name in ("submit_time", "start_time", "end_time"))
    if submitted is None:
        raise ValueError("no time of submission")
    if start is not None and end is None and row.get("duration", "").strip():
        end = start + round(number_of(row["duration"], _MAX_SECONDS) * SECOND)
    pods = max(1, round(number_of(row["node_num"], MAX_PODS_OF_A_JOB)))
    return TraceJob(
        name_of(row["job_id"]),
        name_of(row["vc"]) or "default",
        name_of(row["vc"]) or "default",
        name_of(row["user"]),
        submitted,
        pods,
        per_pod(pods, cards=number_of(row["gpu_num"]), cores=number_of(row["cpu_num"], 1e7), memory=0.0),
        () if start is None else (TraceAttempt(start, end),),
        ended=end,
    )
