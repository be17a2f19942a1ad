"""Alibaba's GPU trace of 2023: `openb_pod_list_*.csv`, one line a pod, with parts of cards in thousandths.

Times are seconds from the begin of the trace. Each pod is a job; its class of service is its queue and its tenant.
"""

from collections.abc import Mapping, Sequence
from typing import BinaryIO

from hekla.simulation.lab.importers.traces import (
    TraceAttempt,
    TraceJob,
    TraceNotes,
    name_of,
    number_of,
    per_pod,
    table,
    too_many_jobs,
)
from hekla.simulation.lab.workload import MAX_JOBS, SECOND, WorkloadNote

_NEEDED = ("name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli", "qos", "creation_time", "deletion_time")
_MAX_SECONDS, _WHOLE_CARD, _MIB = 1e10, 1000.0, 2**20


def read(file: BinaryIO, notes: TraceNotes) -> Sequence[TraceJob]:
    """The jobs of the file. Raises InvalidTrace."""
    found: list[TraceJob] = []
    for row in table(file, ",", _NEEDED, notes):
        try:
            found.append(_job(row))
        except (ValueError, OverflowError):
            notes.add(WorkloadNote.UNREADABLE)
        if len(found) > MAX_JOBS:
            raise too_many_jobs()
    return found


def _job(row: Mapping[str, str]) -> TraceJob:
    created, deleted, scheduled = (
        _time(row.get(name, "")) for name in ("creation_time", "deletion_time", "scheduled_time")
    )
    if created is None:
        raise ValueError("no time of creation")
    cards = number_of(row["num_gpu"]) * (number_of(row["gpu_milli"], _WHOLE_CARD) or _WHOLE_CARD) / _WHOLE_CARD
    memory = number_of(row["memory_mib"], 1e12) * _MIB
    queue = name_of(row["qos"]) or "default"
    return TraceJob(
        name_of(row["name"]),
        queue,
        queue,
        "",
        created,
        1,
        per_pod(1, cards=cards, cores=number_of(row["cpu_milli"], 1e10) / 1000, memory=memory),
        () if scheduled is None else (TraceAttempt(scheduled, deleted),),
        ended=deleted,
    )


def _time(text: str) -> int | None:
    return round(number_of(text, _MAX_SECONDS) * SECOND) if text.strip() else None
