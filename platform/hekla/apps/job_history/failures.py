"""Why a pod failed, in words: what happened, and what to try.

The backend's reason comes first, then the exit code, by the conventions of shells and signals. The end of the program's
log often says more; some common error messages are recognized there.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass

from django.utils.translation import gettext as _

from hekla.apps.job_history import endings
from hekla.apps.jobs.models import Pod
from hekla.domain.phases import PodPhase

Phrase = Callable[[], str]
_SIGNALLED = 128


@dataclass(frozen=True, slots=True)
class Explanation:
    """What happened, and what to try."""

    cause: str
    advice: str


def explain(pod: Pod) -> Explanation | None:
    """The explanation of a failed, lost or evicted attempt; None for others, and for those stopped on request."""
    if pod.phase not in (PodPhase.FAILED, PodPhase.LOST) or (pod.reason == "Stopped" and not pod.evicted):
        return None
    known = _BY_REASON.get(pod.reason) or _BY_EXIT_CODE.get(_code(pod.exit_code)) or _plain(pod)
    return Explanation(known[0]() % {"code": pod.exit_code, "node": pod.node}, known[1]())


def explain_log(log: str) -> Explanation | None:
    """The explanation of the last known error message in a log, or None."""
    found = [
        (match.start(), match, explanation) for pattern, explanation in _IN_LOGS for match in pattern.finditer(log)
    ]
    if not found:
        return None
    _at, match, (cause, advice) = max(found, key=lambda one: one[0])
    what = {"what": match["what"][:120]} if "what" in match.re.groupindex else {}
    return Explanation(cause() % what, advice() % what)


def _code(code: int | None) -> int | None:
    """The exit code; a negative one is a signal, and becomes 128 plus its number."""
    return _SIGNALLED - code if code is not None and code < 0 else code


def _plain(pod: Pod) -> tuple[Phrase, Phrase]:
    if pod.phase == PodPhase.LOST:
        return _lost, _replaced
    if pod.exit_code is None:
        return (lambda: _("The process could not be started.")), _ask_message
    if pod.exit_code > _SIGNALLED and endings.signal_name(pod.exit_code):
        return (lambda: _("A signal stopped the process.")), _ask_log
    return (lambda: _("The program failed with exit code %(code)s.")), _ask_log


def _lost() -> str:
    return _("Unknown exit status: the node or the record is missing.")


def _try_again() -> str:
    return _(
        "Run the job again. A policy for PodFailed restarts it automatically. If the pod is lost again, check the node."
    )


def _replaced() -> str:
    return _("A lost pod is replaced automatically, up to max_retry of its task. If it happens again, check the node.")


def _ask_log() -> str:
    return _("Check the end of the log for the error.")


def _ask_message() -> str:
    return _("The message names the problem. Change the job, or ask a cluster operator.")


def _more_memory() -> str:
    return _("Request more memory, or use less: smaller batches, fewer data loader workers.")


def _check_command() -> str:
    return _("Check the spelling of the command, the programs in its environment or image, and PATH.")


def _debug_crash() -> str:
    return _(
        "Check for a native library that does not match the other libraries or the driver. faulthandler shows "
        "where it crashed."
    )


_STOPPED_FROM_OUTSIDE = (
    lambda: _("The process received SIGTERM and stopped."),
    lambda: _("If no person stopped it, check the job's history for an eviction or a policy."),
)
_SUPERVISOR_KILLED = (
    lambda: _("The supervising process was killed, so the pod was stopped too."),
    lambda: _(
        "If the node ran out of memory, its system log shows it. A lost pod is replaced automatically, up "
        "to max_retry of its task."
    ),
)
_BY_REASON: dict[str, tuple[Phrase, Phrase]] = {
    "OOMKilled": (
        lambda: _("The pod exceeded its memory request and was stopped."),
        _more_memory,
    ),
    "CommandNotFound": (lambda: _("The command does not exist on the node or in the image."), _check_command),
    "CommandNotExecutable": (
        lambda: _("The command exists but cannot be executed."),
        lambda: _(
            "Make the file executable and start it with an interpreter line, or name the interpreter in the command."
        ),
    ),
    "WorkingDirMissing": (
        lambda: _("The working folder does not exist."),
        lambda: _("Correct working_dir, or add a file in that folder to the job."),
    ),
    "EnvironmentFailed": (
        lambda: _("The Python environment could not be built."),
        lambda: _("The log names the failing package. Correct the list of packages of the environment."),
    ),
    "PreparationDied": (lambda: _("The preparation was interrupted several times."), _try_again),
    "StartRefused": (lambda: _("The pod can never start with these settings."), _ask_message),
    "NodeRestarted": (lambda: _("The node restarted while the pod was running."), _replaced),
    "ShimDied": _SUPERVISOR_KILLED,
    "AttendantDied": _SUPERVISOR_KILLED,
    "Vanished": (lambda: _("The pod no longer exists in the cluster."), _replaced),
    "Deleted": (lambda: _("The pod was deleted from the cluster."), _replaced),
    "NodeLost": (lambda: _("Node %(node)s is not responding."), _replaced),
    "Unreadable": (lambda: _("The exit record is damaged."), _replaced),
    "Evicted": (
        lambda: _("The pod was evicted from its node."),
        lambda: _("The message names the missing resource. Request as much as the pod needs."),
    ),
    "DeadlineExceeded": (
        lambda: _("The pod reached its time limit."),
        lambda: _("Raise the time limit, or save checkpoints and continue from them."),
    ),
} | dict.fromkeys(
    ("ErrImagePull", "ImagePullBackOff", "InvalidImageName"),
    (
        lambda: _("The image could not be pulled."),
        lambda: _("Check the image name, its tag, and the cluster's permission to pull it."),
    ),
)
_BY_EXIT_CODE: dict[int | None, tuple[Phrase, Phrase]] = {
    2: (
        lambda: _("Exit code 2. Most programs use it for wrong arguments."),
        lambda: _("Check the arguments of the command. The log names the wrong one."),
    ),
    126: (lambda: _("The command cannot be executed (exit code 126)."), _check_command),
    127: (lambda: _("Command not found (exit code 127)."), _check_command),
    130: (
        lambda: _("The process was interrupted (SIGINT)."),
        lambda: _("If no person interrupted it, one of its own processes sent the signal. Check the log."),
    ),
    132: (
        lambda: _("The program used an instruction that this processor does not support (SIGILL)."),
        lambda: _("Use libraries built for this type of processor."),
    ),
    134: (lambda: _("The program aborted (SIGABRT), usually after a failed assertion in a native library."), _ask_log),
    135: (
        lambda: _("The program accessed memory that does not exist (SIGBUS)."),
        lambda: _("Usually shared memory is too small, or a mapped file was truncated. Use fewer data loader workers."),
    ),
    136: (lambda: _("Arithmetic error, for example division by zero (SIGFPE)."), _ask_log),
    137: (
        lambda: _("The process was killed (SIGKILL): by a person, after the grace period, or for lack of memory."),
        _more_memory,
    ),
    139: (lambda: _("Segmentation fault (SIGSEGV)."), _debug_crash),
    141: (
        lambda: _("The program wrote to a closed pipe or connection (SIGPIPE)."),
        lambda: _("Check which of the connected programs stopped first."),
    ),
    143: _STOPPED_FROM_OUTSIDE,
    152: (
        lambda: _("The process reached its CPU time limit (SIGXCPU)."),
        lambda: _("Raise the limit (ulimit -t), or shorten the run."),
    ),
}


def _known_output(pattern: str, cause: Phrase, advice: Phrase) -> tuple[re.Pattern[str], tuple[Phrase, Phrase]]:
    return re.compile(pattern), (cause, advice)


_IN_LOGS = (
    _known_output(
        r"CUDA out of memory|CUDA_ERROR_OUT_OF_MEMORY|cudaErrorMemoryAllocation",
        lambda: _("The GPU ran out of memory."),
        lambda: _("Use smaller batches, a smaller model, mixed precision, or a GPU with more memory."),
    ),
    _known_output(
        r"ModuleNotFoundError: No module named '(?P<what>[^'\n]{1,200})'",
        lambda: _("The Python package %(what)s is missing."),
        lambda: _("Add it to the environment of the task, or choose an environment that has it."),
    ),
    _known_output(
        r"FileNotFoundError: \[Errno 2\] No such file or directory: '(?P<what>[^'\n]{1,400})'",
        lambda: _("The file %(what)s does not exist."),
        lambda: _("Add the file to the job, or correct its path."),
    ),
    _known_output(
        r"PermissionError: \[Errno 13\] Permission denied: '(?P<what>[^'\n]{1,400})'",
        lambda: _("No permission to access %(what)s."),
        lambda: _("Write to the pod's own folder, or change the permissions."),
    ),
    _known_output(
        r"No space left on device",
        lambda: _("The disk is full."),
        lambda: _("Write less or elsewhere, and delete unused files."),
    ),
    _known_output(
        r"Address already in use",
        lambda: _("Another process uses the port."),
        lambda: _("Choose another port, or wait until the other process stops."),
    ),
    _known_output(
        r"Connection refused|ConnectionRefusedError",
        lambda: _("Connection refused."),
        lambda: _("Retry for a while in the program, or let the task wait for the other one (dependsOn)."),
    ),
    _known_output(
        r"Name or service not known|Temporary failure in name resolution|getaddrinfo failed",
        lambda: _("A host name could not be resolved."),
        lambda: _("Use the addresses from the environment variables, or the plugin svc."),
    ),
    _known_output(
        r"MemoryError|Cannot allocate memory|bad_alloc",
        lambda: _("The program could not allocate memory."),
        _more_memory,
    ),
    _known_output(
        r"NCCL (?:WARN|error)|ncclSystemError|ncclUnhandledCudaError",
        lambda: _("The GPUs could not communicate (NCCL)."),
        lambda: _("Check which pod stopped first. The others only report it. NCCL_DEBUG=INFO shows more."),
    ),
    _known_output(
        r"Traceback \(most recent call last\)[\s\S]{0,4000}?\n(?P<what>[A-Za-z_][\w.]{0,80}(?:Error|Exception))\b",
        lambda: _("The Python program failed with %(what)s."),
        lambda: _("The last line names the error, the lines above show where it happened."),
    ),
)
