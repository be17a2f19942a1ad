"""How attempts ended, in words: exit codes with their meaning, and why pods were stopped."""

import signal
from collections.abc import Callable

from django.utils.translation import gettext as _

from hekla.apps.job_history import labels
from hekla.apps.jobs.models import Pod
from hekla.domain.phases import PodPhase

_SIGNALS = {number.value: number.name for number in signal.Signals}


def exit_code(code: int | None) -> str:
    """An exit code with its meaning, if it has a standard one."""
    if code is None:
        return "–"
    if name := signal_name(code):
        return _("%(code)d, stopped by %(signal)s") % {"code": code, "signal": name}
    meaning = {126: _("not executable"), 127: _("command not found")}.get(code)
    return f"{code}, {meaning}" if meaning else str(code)


def signal_name(code: int) -> str:
    """The signal of an exit code (137: SIGKILL), or an empty string."""
    return _SIGNALS.get(-code if code < 0 else code - 128, "")


def exit_of(pod: Pod) -> str:
    """How an attempt's process ended: its exit code, and "out of memory" if the backend says so."""
    if pod.reason == "OOMKilled":
        return _("%(code)s, out of memory") % {"code": pod.exit_code}
    return exit_code(pod.exit_code)


def was_stopped(pod: Pod) -> bool:
    """Whether an attempt was stopped on request, and did not end by itself."""
    return pod.phase == PodPhase.FAILED and pod.reason == "Stopped"


def outcome(pod: Pod) -> str:
    """The state of an attempt, with its exit code unless that is zero or unknown."""
    if was_stopped(pod):
        return _("Stopped")
    return f"{labels.phase(pod.phase)} · {pod.exit_code}" if pod.exit_code else labels.phase(pod.phase)


def detail(reason: str, message: str) -> str:
    """The backend's message about a pod's end beyond the exit code, in the reader's language where possible."""
    if reason == "Error" or reason.startswith("SIG"):
        return ""
    if reason == "OOMKilled":
        return _("The pod exceeded its memory request and was stopped.")
    return stop_reason(message) if reason == "Stopped" else message


def stop_reason(code: str) -> str:
    """Why a pod was stopped, from the code of the lifecycle step; unknown codes stay unchanged."""
    phrase = _STOP_REASONS.get(code)
    return phrase() if phrase else code


def _has_failed() -> str:
    return _("the job failed")


def _is_done() -> str:
    return _("the job finished")


_STOP_REASONS: dict[str, Callable[[], str]] = {
    "AbortRequested": lambda: _("the job was aborted"),
    "TerminateRequested": lambda: _("the job was terminated"),
    "CompleteRequested": lambda: _("the job was completed early"),
    "RestartRequested": lambda: _("a person restarted the job"),
    "Restarting": lambda: _("the job restarts"),
    "Resumed": lambda: _("the job was resumed"),
    "RetriesExhausted": lambda: _("the job has no restarts left"),
    "PodsFailed": _has_failed,
    "TaskFailed": _has_failed,
    "TooFewSuccesses": _has_failed,
    "PodsSucceeded": _is_done,
    "MinSuccessReached": _is_done,
    "DeadlineExceeded": lambda: _("the job reached its time limit"),
    "ScaledDown": lambda: _("the job was scaled down"),
    "LeaderStops": lambda: _("stopped by Volcano"),
    "preempt": lambda: _("preempted by a job of higher priority"),
    "reclaim": lambda: _("reclaimed by another queue"),
    "volume": lambda: _("its volume cannot be reached from the node"),
}
