"""Measures of jobs: what happens to them, why they wait and fail, how large they are, and how long they waited.

Waiting times are counted in buckets whose limits grow by the fourth root of 2. Counts of buckets can be added up, and
quantiles follow from the sums: at most 19 per cent too long. Quantiles themselves cannot be added up.
"""

import math
from collections.abc import Mapping
from enum import StrEnum

QUANTILES = (0.5, 0.9, 0.95, 0.99)
LAST_BUCKET = 100
"""Its limit is more than a year."""
_PER_DOUBLING = 4


class MomentKind(StrEnum):
    """What is counted of a job, each at its time.

    waited: the part of the wait before the start that one reason took, at the time of the start. stopped: aborted or
    terminated, but not because a pod failed. unstarted: it ended without ever having started. preempted: pods of it
    were evicted. retried: it restarted by policy. A job that ended is completed, failed or stopped.
    """

    SUBMITTED = "submitted"
    STARTED = "started"
    WAITED = "waited"
    COMPLETED = "completed"
    FAILED = "failed"
    STOPPED = "stopped"
    UNSTARTED = "unstarted"
    PREEMPTED = "preempted"
    RETRIED = "retried"


RESULTS = (MomentKind.COMPLETED, MomentKind.FAILED, MomentKind.STOPPED)


class FailureCause(StrEnum):
    """Why a job failed: how its first pod failed that was not replaced.

    exit_code: its program failed. memory: it exceeded its memory. node: its node or record is lost. pressure: the node
    evicted it for lack of resources. preempted: for good, since no pod replaced it. image: it could not be pulled.
    timeout: the job or the pod reached its time limit. start: it could not be started. other: no pod failed.
    """

    EXIT_CODE = "exit_code"
    MEMORY = "memory"
    NODE = "node"
    PRESSURE = "pressure"
    PREEMPTED = "preempted"
    IMAGE = "image"
    TIMEOUT = "timeout"
    START = "start"
    OTHER = "other"


_BY_REASON = {
    "OOMKilled": FailureCause.MEMORY,
    "Evicted": FailureCause.PRESSURE,
    "DeadlineExceeded": FailureCause.TIMEOUT,
    **dict.fromkeys(
        ("NodeLost", "NodeRestarted", "Vanished", "Deleted", "Unreadable", "ShimDied", "AttendantDied"),
        FailureCause.NODE,
    ),
    **dict.fromkeys(("ErrImagePull", "ImagePullBackOff", "InvalidImageName"), FailureCause.IMAGE),
    **dict.fromkeys(
        (
            *("CommandNotFound", "CommandNotExecutable", "WorkingDirMissing", "EnvironmentFailed"),
            *("PreparationDied", "StartRefused", "BindFailed"),
        ),
        FailureCause.START,
    ),
}


def cause_of_pod(reason: str, exit_code: int | None, *, is_lost: bool) -> FailureCause:
    """Why a pod failed, from the backend's reason and its exit code."""
    if known := _BY_REASON.get(reason):
        return known
    if is_lost:
        return FailureCause.NODE
    return FailureCause.START if exit_code is None else FailureCause.EXIT_CODE


class WaitReason(StrEnum):
    """What a job waits for: a cause of the engine, its pods that start, or no reason is known."""

    CAPACITY = "capacity"
    QUOTA = "quota"
    GANG = "gang"
    PRIORITY = "priority"
    CONSTRAINT = "constraint"
    DATA = "data"
    POLICY = "policy"
    STARTING = "starting"
    UNKNOWN = "unknown"


class JobSize(StrEnum):
    """The GPUs that all pods of a job request together."""

    NONE = "0"
    ONE = "1"
    NODE_PART = "2-4"
    NODE = "5-8"
    NODES = "9-16"
    MANY = "17-64"
    MOST = "65+"


_LARGEST = {
    JobSize.NONE: 0,
    JobSize.ONE: 1,
    JobSize.NODE_PART: 4,
    JobSize.NODE: 8,
    JobSize.NODES: 16,
    JobSize.MANY: 64,
}


def size_of(gpus: float) -> JobSize:
    """The size of a job with so many GPUs. A part of a GPU counts as one."""
    return next((size for size, most in _LARGEST.items() if gpus <= most), JobSize.MOST)


def bucket_of(milliseconds: int) -> int:
    """The bucket of a waiting time. The first one reaches to one second."""
    if milliseconds <= 1000:  # noqa: PLR2004
        return 0
    return min(math.ceil(_PER_DOUBLING * math.log2(milliseconds / 1000)), LAST_BUCKET)


def limit_of(bucket: int) -> float:
    """The longest waiting time of a bucket, in seconds."""
    return math.pow(2, bucket / _PER_DOUBLING)


def quantile(buckets: Mapping[int, int], part: float) -> float | None:
    """The waiting time in seconds that this part of the jobs did not exceed; None without jobs.

    Inside a bucket the times are taken to be spread evenly.
    """
    whole = sum(buckets.values())
    if not whole:
        return None
    rank, before = part * whole, 0
    for bucket, count in sorted(buckets.items()):
        if count and before + count >= rank:
            low, high = (limit_of(bucket - 1) if bucket else 0.0), limit_of(bucket)
            return low + (high - low) * max(rank - before, 0) / count
        before += count
    return limit_of(max(buckets))
