"""A part of the log of a pod, as backends return it."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LogChunk:
    """Bytes `offset .. next_offset` of a pod's log. `complete`: the pod has ended, and no more bytes follow.

    `times`: when they arrived, if it is known: from each offset on, in milliseconds; 0: unknown.
    """

    data: bytes
    offset: int
    next_offset: int
    complete: bool
    times: Sequence[tuple[int, int]] = ()
