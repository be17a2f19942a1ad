"""The resident memory of this process, and its peak since a moment that one chooses."""

import sys
from pathlib import Path

_STATUS, _CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")
_RESET_PEAK = "5"


def forget_peak() -> None:
    """Reset the peak memory on Linux. Elsewhere the peak covers the whole life of the process."""
    try:
        _CLEAR.write_text(_RESET_PEAK)
    except OSError:
        return


def peak_mib() -> float:
    """The peak of the resident memory, in MiB; 0 on Windows."""
    return _from_status("VmHWM:") or _peak_of_process()


def present_mib() -> float:
    """The resident memory now, in MiB; outside of Linux its peak."""
    return _from_status("VmRSS:") or _peak_of_process()


def _from_status(field: str) -> float:
    try:
        lines = _STATUS.read_text().splitlines()
    except OSError:
        return 0.0
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith(field)), 0.0)


def _peak_of_process() -> float:
    try:
        import resource  # noqa: PLC0415  (not on Windows)
    except ImportError:
        return 0.0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 2**20 if sys.platform == "darwin" else peak / 1024
