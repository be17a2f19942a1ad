"""Philly (Microsoft): `cluster_job_log`, a JSON list of jobs, each with its attempts and the cards of each on machines.

CPUs and memory are not recorded. A job without an attempt is one of one card. Times have no zone.
"""

from collections.abc import Mapping, Sequence
from typing import Any, BinaryIO

import orjson

from hekla.domain.translation import translate
from hekla.simulation.lab.importers.traces import (
    MAX_BYTES,
    MAX_PODS_OF_A_JOB,
    InvalidTrace,
    TraceAttempt,
    TraceJob,
    TraceNotes,
    name_of,
    per_pod,
    time_of,
    too_many_jobs,
)
from hekla.simulation.lab.workload import MAX_JOBS, WorkloadNote

_MAX_ATTEMPTS = 100
_CORES_OF_A_CARD = 1.0


def read(file: BinaryIO, notes: TraceNotes) -> Sequence[TraceJob]:
    """The jobs of the file. Raises InvalidTrace."""
    text = file.read(MAX_BYTES + 1)
    if len(text) > MAX_BYTES:
        raise InvalidTrace(translate("The file is too large."))
    try:
        rows = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        sentence = translate("Line {n}: the file is no JSON: {error}", n=error.lineno, error=error.msg)
        raise InvalidTrace(sentence) from error
    if not isinstance(rows, list):
        raise InvalidTrace(translate("The file is no list of jobs."))
    if len(rows) > MAX_JOBS:
        raise too_many_jobs()
    found: list[TraceJob] = []
    for notes.line, row in enumerate(rows, start=1):
        try:
            found.append(_job(row, notes))
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError, RecursionError):
            notes.add(WorkloadNote.UNREADABLE)
    return found


def _job(row: Mapping[str, Any], notes: TraceNotes) -> TraceJob:
    submitted = time_of(_words(row["submitted_time"]), notes)
    if submitted is None:
        raise ValueError("no time of submission")
    attempts = [one for one in row["attempts"][:_MAX_ATTEMPTS] if _words(one.get("start_time"))]
    sizes = [[len(part["gpus"]) for part in one["detail"]] for one in attempts if one["detail"]]
    size = max(sizes, key=sum, default=[1])
    pods, cards = min(len(size), MAX_PODS_OF_A_JOB), max(1, *size)
    read = [_attempt(one, notes) for one in attempts]
    return TraceJob(
        name_of(row["jobid"]),
        name_of(row["vc"]) or "default",
        name_of(row["vc"]) or "default",
        name_of(row["user"]),
        submitted,
        pods,
        per_pod(pods, cards=cards * pods, cores=_CORES_OF_A_CARD * cards * pods, memory=0.0),
        tuple(one for one in read if one is not None),
        ended=submitted if row["status"] in ("Killed", "Failed") and not read else None,
    )


def _attempt(row: Mapping[str, Any], notes: TraceNotes) -> TraceAttempt | None:
    start = time_of(_words(row["start_time"]), notes)
    nodes = tuple(name_of(part["ip"]) for part in row["detail"])
    return None if start is None else TraceAttempt(start, time_of(_words(row.get("end_time")), notes), nodes)


def _words(value: object) -> str:
    """A text of the file; null is no text. Times with a zone's name, as `2017-10-07 03:41:02 PDT`, lose it."""
    return " ".join(str(value).split(" ")[:2]) if isinstance(value, str) else ""
