"""Why a pod did not do what it should, in words: what happened, and what to try.

What the backend says (its reason) comes first, then the exit code, by the customs of shells and of the signals that end
processes. What a program itself says at the end of its log often tells more; some of that is known by sight too.
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
    """For an attempt that failed or was lost; None for one that did not, or that was asked to end."""
    if pod.phase not in (PodPhase.FAILED, PodPhase.LOST) or (pod.reason == "Stopped" and not pod.evicted):
        return None
    known = _BY_REASON.get(pod.reason) or _BY_EXIT_CODE.get(_code(pod.exit_code)) or _plain(pod)
    return Explanation(known[0]() % {"code": pod.exit_code, "node": pod.node}, known[1]())


def seen_in(log: str) -> Explanation | None:
    """What the last lines of a log say, where that is known by sight. The last thing said counts."""
    found = [(match.start(), match, told) for pattern, told in _IN_LOGS for match in pattern.finditer(log)]
    if not found:
        return None
    _at, match, (cause, advice) = max(found, key=lambda one: one[0])
    what = {"what": match["what"][:120]} if "what" in match.re.groupindex else {}
    return Explanation(cause() % what, advice() % what)


def _code(code: int | None) -> int | None:
    """A negative code is a signal, as 128 and more is."""
    return _SIGNALLED - code if code is not None and code < 0 else code


def _plain(pod: Pod) -> tuple[Phrase, Phrase]:
    if pod.phase == PodPhase.LOST:
        return _lost, _replaced
    if pod.exit_code is None:
        return (lambda: _("It could not be started.")), _ask_message
    if pod.exit_code > _SIGNALLED and endings.signal_name(pod.exit_code):
        return (lambda: _("A signal ended its process.")), _ask_log
    return (
        lambda: _("Its program ended with exit code %(code)s, by which it says that something went wrong.")
    ), _ask_log


def _lost() -> str:
    return _("Nobody knows how it ended: its node or its record is gone.")


def _try_again() -> str:
    return _("Run it again. A policy for PodFailed restarts it by itself; if it is lost again, look at the node.")


def _replaced() -> str:
    return _(
        "A lost pod is replaced by itself, as often as its task's max_retry allows; if it happens again, look at the "
        "node."
    )


def _ask_log() -> str:
    return _("Look at the end of its log: programs say there what they could not do.")


def _ask_message() -> str:
    return _("The message says what is in the way; change the job, or ask those who run the cluster.")


def _more_memory() -> str:
    return _("Ask for more memory, or let it take less: smaller batches, fewer workers that load data.")


def _check_command() -> str:
    return _("Compare the command with what there is in its environment or image, letter by letter, and its PATH.")


def _debug_crash() -> str:
    return _("Look for a native library that does not fit the others or the driver; faulthandler shows where it was.")


_STOPPED_FROM_OUTSIDE = (
    lambda: _("It was asked to end (SIGTERM) and ended."),
    lambda: _("If nobody stopped it, look in the job's history for an eviction or a policy that did."),
)
_BY_REASON: dict[str, tuple[Phrase, Phrase]] = {
    "OOMKilled": (
        lambda: _("It took more memory than it asked for, and was ended for that."),
        _more_memory,
    ),
    "CommandNotFound": (lambda: _("There is no program of that name where it ran."), _check_command),
    "CommandNotExecutable": (
        lambda: _("Its command is there and cannot be run."),
        lambda: _("Give the file the right to be executed and a first line that names its interpreter, or name that."),
    ),
    "WorkingDirMissing": (
        lambda: _("Its working folder is not there."),
        lambda: _("Correct working_dir, or let the job bring a file into that folder."),
    ),
    "EnvironmentFailed": (
        lambda: _("Its Python environment could not be built."),
        lambda: _("The log says which package was in the way: correct the environment's list of packages."),
    ),
    "PreparationDied": (lambda: _("Getting it ready was cut off again and again."), _try_again),
    "StartRefused": (lambda: _("It can never start as it is."), _ask_message),
    "NodeRestarted": (lambda: _("The machine was started anew while it ran."), _replaced),
    "ShimDied": (
        lambda: _("The process that watches over it was killed, so it was ended too."),
        lambda: _(
            "Was memory short on the machine? Then its system log says so. A lost pod is replaced by itself, as often "
            "as its task's max_retry allows."
        ),
    ),
    "Vanished": (lambda: _("The cluster knows nothing of it any more."), _replaced),
    "Deleted": (lambda: _("Somebody deleted it from the cluster."), _replaced),
    "NodeLost": (lambda: _("Its node %(node)s does not answer any more."), _replaced),
    "Unreadable": (lambda: _("The record of how it ended is damaged."), _replaced),
    "Evicted": (
        lambda: _("It had to leave its node."),
        lambda: _("The message says what was short there; ask for as much as it needs, and it is placed by that."),
    ),
    "DeadlineExceeded": (
        lambda: _("It ran longer than it was allowed to."),
        lambda: _("Raise the limit of time, or let it keep its state and go on from there."),
    ),
} | dict.fromkeys(
    ("ErrImagePull", "ImagePullBackOff", "InvalidImageName"),
    (
        lambda: _("Its image could not be fetched."),
        lambda: _("Check the image's name and tag, and that the cluster may read it there."),
    ),
)
_BY_EXIT_CODE: dict[int | None, tuple[Phrase, Phrase]] = {
    2: (
        lambda: _("It ended with exit code 2, by which most programs say that they were called in a wrong way."),
        lambda: _("Check the arguments of its command; the log shows which one was not understood."),
    ),
    126: (lambda: _("A command was found and could not be run (exit code 126)."), _check_command),
    127: (lambda: _("A command was not found (exit code 127)."), _check_command),
    130: (
        lambda: _("It was interrupted (SIGINT)."),
        lambda: _("If nobody did that, one of its own processes sent it; the log may say which."),
    ),
    132: (
        lambda: _("It used an instruction that this processor does not know (SIGILL)."),
        lambda: _("Use a build of its libraries for this kind of processor."),
    ),
    134: (lambda: _("It gave up by itself (SIGABRT), mostly after an assertion in a native library."), _ask_log),
    135: (
        lambda: _("It reached for memory that is not there (SIGBUS)."),
        lambda: _("Mostly shared memory is too small, or a mapped file was cut short: fewer workers that load data."),
    ),
    136: (lambda: _("It calculated what cannot be calculated, such as a division by zero (SIGFPE)."), _ask_log),
    137: (
        lambda: _(
            "Its process was killed (SIGKILL): by a person, by the end of its grace time, or for want of memory."
        ),
        _more_memory,
    ),
    139: (lambda: _("It touched memory that is not its own and crashed (SIGSEGV)."), _debug_crash),
    141: (
        lambda: _("It wrote to something that nobody reads any more (SIGPIPE)."),
        lambda: _("Look at which of the programs that it is connected to ended first."),
    ),
    143: _STOPPED_FROM_OUTSIDE,
    152: (
        lambda: _("It used up the CPU time that it may take (SIGXCPU)."),
        lambda: _("Raise that limit (ulimit -t) or shorten the run."),
    ),
}


def _seen(pattern: str, cause: Phrase, advice: Phrase) -> tuple[re.Pattern[str], tuple[Phrase, Phrase]]:
    return re.compile(pattern), (cause, advice)


_IN_LOGS = (
    _seen(
        r"CUDA out of memory|CUDA_ERROR_OUT_OF_MEMORY|cudaErrorMemoryAllocation",
        lambda: _("The GPU's memory was full."),
        lambda: _("Smaller batches, a smaller model or mixed precision; or a GPU with more memory."),
    ),
    _seen(
        r"ModuleNotFoundError: No module named '(?P<what>[^'\n]{1,200})'",
        lambda: _("The Python package %(what)s is missing."),
        lambda: _("Add it to the environment of the task, or choose an environment that has it."),
    ),
    _seen(
        r"FileNotFoundError: \[Errno 2\] No such file or directory: '(?P<what>[^'\n]{1,400})'",
        lambda: _("The file %(what)s is not there."),
        lambda: _("Let the job bring it, or name it as it is called where the pod runs."),
    ),
    _seen(
        r"PermissionError: \[Errno 13\] Permission denied: '(?P<what>[^'\n]{1,400})'",
        lambda: _("It may not touch %(what)s."),
        lambda: _("Write into its own folder, or have the rights changed."),
    ),
    _seen(
        r"No space left on device",
        lambda: _("The disk was full."),
        lambda: _("Write less or elsewhere, and remove what is not needed any more."),
    ),
    _seen(
        r"Address already in use",
        lambda: _("Another process listens on its port already."),
        lambda: _("Choose another port, or wait until the one that holds it has ended."),
    ),
    _seen(
        r"Connection refused|ConnectionRefusedError",
        lambda: _("Nobody listened where it wanted to connect."),
        lambda: _("Let it try again for a while, or let its task wait for the other one (dependsOn)."),
    ),
    _seen(
        r"Name or service not known|Temporary failure in name resolution|getaddrinfo failed",
        lambda: _("A name could not be found in the network."),
        lambda: _("Use the addresses that it is given in its environment, or the plugin svc."),
    ),
    _seen(
        r"MemoryError|Cannot allocate memory|bad_alloc",
        lambda: _("It asked for more memory than it could get."),
        _more_memory,
    ),
    _seen(
        r"NCCL (?:WARN|error)|ncclSystemError|ncclUnhandledCudaError",
        lambda: _("The GPUs could not speak to one another (NCCL)."),
        lambda: _("Look which pod ended first: the others only notice. NCCL_DEBUG=INFO tells more."),
    ),
    _seen(
        r"Traceback \(most recent call last\)[\s\S]{0,4000}?\n(?P<what>[A-Za-z_][\w.]{0,80}(?:Error|Exception))\b",
        lambda: _("Its Python program ended with %(what)s."),
        lambda: _("The lines above it say where; the last one says what was wrong."),
    ),
)
