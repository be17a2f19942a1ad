"""The runs of a schedule that did not start."""

from enum import StrEnum


class SkipReason(StrEnum):
    """Why a run that was due did not start."""

    STILL_RUNNING = "still_running"
    TOO_LATE = "too_late"
    REFUSED = "refused"
