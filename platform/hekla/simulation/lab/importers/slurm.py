"""Slurm's accounting: the output of `sacct --allusers --duplicates --parsable2 --format=…`.

    sacct -aDP -S 2026-01-01 -E 2026-01-08 \\
        -o JobID,User,Account,Partition,Submit,Start,End,State,NNodes,ReqTRES,NodeList

Steps are left out; lines of one job are its attempts, as after a requeue.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
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
from hekla.simulation.lab.workload import MAX_JOBS, MAX_PODS, WorkloadNote

_NEEDED = ("JobID", "Submit", "Start", "End", "State")
_SIZE = re.compile(r"(\d+(?:\.\d+)?)([KMGTP]?)[nc]?", re.ASCII)
_UNITS = {"": 2**20, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40, "P": 2**50}
"""sacct prints megabytes where it prints no unit."""
_MAX_BYTES, _DIGITS, _MAX_ATTEMPTS, _LONGEST_PREFIX = 2.0**60, 6, 100, 253
_NODE = re.compile(r"([\w.-]*)\[([\d,-]+)\]|([\w.-]+)", re.ASCII)


def read(file: BinaryIO, notes: TraceNotes) -> Sequence[TraceJob]:
    """The jobs of the file. Raises InvalidTrace."""
    found: dict[str, TraceJob] = {}
    left = MAX_PODS  # names of nodes: a short line may name ten thousand
    for row in table(file, "|", _NEEDED, notes):
        if "." in row["JobID"]:
            continue
        try:
            job = _job(row, notes, left)
        except (ValueError, OverflowError):
            notes.add(WorkloadNote.UNREADABLE)
            continue
        left -= sum(len(one.nodes) for one in job.attempts)
        before = found.get(row["JobID"])
        attempts = (*before.attempts, *job.attempts)[:_MAX_ATTEMPTS] if before else ()
        found[row["JobID"]] = replace(before, attempts=attempts) if before else job
        if len(found) > MAX_JOBS:
            raise too_many_jobs()
    return list(found.values())


def _job(row: Mapping[str, str], notes: TraceNotes, most_names: int) -> TraceJob:
    submitted, start, end = (time_of(row[name], notes) for name in ("Submit", "Start", "End"))
    if submitted is None:
        raise ValueError("no time of submission")
    tres = _tres(row.get("AllocTRES") or row.get("ReqTRES") or "")
    nodes = row.get("NNodes") or tres.get("node") or "1"
    pods = max(1, round(number_of(nodes, MAX_PODS_OF_A_JOB)))
    cards = number_of(tres.get("gres/gpu", "0")) or sum(
        number_of(amount) for name, amount in tres.items() if name.startswith("gres/gpu:")
    )
    cores = number_of(tres.get("cpu") or row.get("ReqCPUS") or "1", 1e7)
    has_run = start is not None and row["State"].split(" ")[0] not in ("PENDING",)
    never_ran = not has_run or (row["State"].startswith("CANCELLED") and start == end)
    attempt = TraceAttempt(start or 0, end, _nodes(row.get("NodeList", ""), min(pods, most_names)))
    return TraceJob(
        name_of(row.get("JobName") or row["JobID"]),
        name_of(row.get("Partition") or "default").split(",")[0],
        name_of(row.get("Account") or row.get("User") or "default"),
        name_of(row.get("User", "")),
        submitted,
        pods,
        per_pod(pods, cards=cards, cores=cores, memory=_memory(tres.get("mem", "0"))),
        () if never_ran else (attempt,),
        ended=end,
    )


def _tres(text: str) -> dict[str, str]:
    """The resources of `cpu=8,gres/gpu=2,mem=64G`."""
    parts = (part.partition("=") for part in text.split(",") if "=" in part)
    return {name.strip(): amount.strip() for name, _sign, amount in parts}


def _memory(text: str) -> float:
    match = _SIZE.fullmatch(text)
    if match is None:
        raise ValueError(text[:40])
    found = float(match[1]) * (_UNITS[match[2]] if float(match[1]) else 0)
    if found > _MAX_BYTES:
        raise ValueError(text[:40])
    return found


def _nodes(text: str, most: int) -> tuple[str, ...]:
    """The names of `a[1-3,07],b`; none if they are not assigned, or more than `most`."""
    found: list[str] = []
    for match in _NODE.finditer("" if text.startswith("None") else text):
        if len(match[1] or "") > _LONGEST_PREFIX:
            return ()
        for part in match[2].split(",") if match[2] else []:
            first, _dash, last = part.partition("-")
            if not first or max(len(first), len(last)) > _DIGITS:
                return ()
            numbers = range(int(first), int(last or first) + 1)
            if len(found) + len(numbers) > most:
                return ()
            found += [f"{match[1]}{at:0{len(first)}d}" for at in numbers]
        if match[3]:
            found.append(match[3])
    return tuple(found) if len(found) <= most else ()
