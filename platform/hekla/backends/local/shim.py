"""The shim: a small process for each pod that starts it, waits for it, stops it, and records its end.

It does not depend on the rest of Hekla, and continues without it. It acts on its folder (`pod_folder`) and its
children; signals carry no data and only wake it.

A pod never runs twice: `launched` is on the disk before the pod's process is created, and a shim that finds it does
nothing. Few imports, standard library only: see `pod_folder`.
"""

import contextlib
import os
import select
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from hekla.backends.local import cgroups
from hekla.backends.local.log_times import LogClock
from hekla.backends.local.pod_folder import FINAL, PodFolder, ShimOrder, ShimStatus, boot_id, open_regular, poke
from hekla.backends.local.processes import descendants, kill, read_process, signal_group
from hekla.backends.local.sandbox import commands, init, system
from hekla.backends.local.sandbox.order import NAMESPACES, SandboxOrder
from hekla.backends.local.shim_errors import PodStartError, StopRequested

if TYPE_CHECKING:
    from _socket import socket

    from hekla.backends.local.cpusets import CpuOrder

MAX_TRIES = 3
_CHUNK_BYTES = 65536
LAST_KILL_SECONDS = 5.0
RETRY_SECONDS = 1.0
NOT_FOUND, NOT_EXECUTABLE = 127, 126
_INHERITED_IGNORED = (signal.SIGPIPE, signal.SIGXFSZ)


def main(path: str, shim_of: "Callable[[ShimOrder], type[Shim]]") -> None:
    """Run the pod in this folder to its end, unless another shim does or did. `shim_of`: the shim for an order."""
    folder = PodFolder(path)
    signal.signal(signal.SIGUSR1, _ignore)  # before the lock: its holder may be signalled
    if folder.acquire() is None:
        return
    order, status = folder.order(), folder.status() or ShimStatus()
    if order is None or status.get("phase") in FINAL or status.get("launched"):
        return
    os.chdir("/")
    os.umask(0o077)
    shim_of(order)(folder, order, status.get("tries", 0) + 1).run()


class Shim:
    """One pod's life, from the lock to the final status."""

    def __init__(self, folder: PodFolder, order: ShimOrder, tries: int) -> None:
        self._folder = folder
        self._order = order
        self._status = ShimStatus(boot=boot_id(), tries=tries)
        self._cpus = ""
        if (cpus := order.get("cpus")) and cpus["own"]:
            self._status["cpus"] = cpus["own"]
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
        self._log = os.open(folder.log, flags, 0o600)
        self._log_clock = LogClock(folder.log_times)
        self._result = self._output = -1
        self._terminated = False
        self._written = True
        self._wakes = self._watch_signals()
        prctl(system.PR_SET_CHILD_SUBREAPER, 1)

    def run(self) -> None:
        """Prepare and launch the pod, wait for its end, and record it."""
        try:
            self._refuse_if_hopeless()
            self._prepare()
            exit_code, stopped = self._run_pod()
        except StopRequested:
            self._finish("failed", "Stopped", self._stop_message())
        except PodStartError as refused:
            self.note(refused.message)
            self._finish("failed", refused.reason, refused.message, refused.exit_code)
        except OSError as error:
            self._finish("failed", "StartRefused", f"The machine could not start it: {error}")
        else:
            self._finish(*self._verdict(exit_code, stopped))

    def note(self, line: str) -> None:
        """Write one line of Hekla's own to the pod's log."""
        self._log_clock.mark(self._log)
        os.write(self._log, f"[hekla] {line}\n".encode())

    def log_tail(self, characters: int) -> str:
        """The end of the pod's log."""
        with open_regular(self._folder.log) as log:
            size = log.seek(0, os.SEEK_END)
            log.seek(max(0, size - 4 * characters))
            return log.read().decode(errors="replace")[-characters:].strip()

    def check_stop(self) -> None:
        """Raise StopRequested if a stop of the pod was requested."""
        if self._terminated or self._folder.stop_request():
            raise StopRequested

    def run_step(self, argv: list[str], env: dict[str, str]) -> int:
        """Run a command of the preparation with its output in the pod's log. Raises PodStartError, StopRequested."""
        exit_code, stopped = self._wait(self._spawn(argv, env, self._folder.tmp), grace_seconds=5.0)
        if stopped:
            raise StopRequested
        return exit_code

    def pause(self, seconds: float) -> None:
        """Sleep until the time is over or a signal arrives. Raises StopRequested."""
        self._sleep(seconds)
        self.check_stop()

    # Phases

    def _refuse_if_hopeless(self) -> None:
        if self._status["tries"] > MAX_TRIES:
            raise PodStartError("PreparationDied", f"Its preparation was cut off {MAX_TRIES} times")

    def _prepare(self) -> None:
        self.check_stop()
        wanted = self._order["environment"]
        if wanted:
            from hekla.backends.local import environments  # noqa: PLC0415  (few pods need it, and the import takes time)

            if not environments.is_ready(wanted):
                self._publish("preparing")
                environments.build_environment(wanted, self)

    def _run_pod(self) -> tuple[int, bool]:
        self.check_stop()
        self._status["launched"] = True
        self._publish("preparing")
        for group, files in self._order["groups"].items():
            cgroups.create(group, files)
        if cpus := self._order.get("cpus"):
            self._keep_on_cpus(cpus, cpus["group"])
        pid = self._spawn(self._order["command"], self._order["env"], self._order["working_dir"], self._order)
        for group, files in self._order["groups"].items():
            cgroups.limit_cpu(group, files)
        process = read_process(pid)
        self._status.update(ShimStatus(pid=pid, pid_started=process.started if process else ""))
        self._publish_when_possible("running")
        return self._wait(pid, self._order["grace_seconds"])

    def _verdict(self, exit_code: int, stopped: bool) -> tuple[str, str, str, int]:
        code = exit_code if exit_code >= 0 else 128 - exit_code
        if stopped:
            return "failed", "Stopped", self._stop_message(), code
        if exit_code and any(map(cgroups.was_oom_killed, self._order["groups"])):
            return "failed", "OOMKilled", "It took more memory than it asked for", code
        if exit_code < 0:
            name = signal.Signals(-exit_code).name if -exit_code in set(signal.Signals) else f"signal {-exit_code}"
            return "failed", name, f"Its process was ended by {name}", code
        if exit_code > 0:
            return "failed", "Error", f"Its process ended with exit code {exit_code}", code
        return "succeeded", "", "", code

    def _stop_message(self) -> str:
        request = self._folder.stop_request()
        return request["reason"] if request else "The shim received a signal to end"

    def _finish(self, phase: str, reason: str, message: str, exit_code: int | None = None) -> None:
        self._remove_remains()
        self._status.update(ShimStatus(reason=reason, message=message, exit_code=exit_code))
        self._publish_when_possible(phase)
        while not self._written:
            self._sleep(RETRY_SECONDS)
            self._write_again()

    def _remove_remains(self) -> None:
        self._kill_descendants()
        for group in self._order["groups"]:
            cgroups.kill(group)

    def _publish(self, phase: str) -> None:
        self._status.update(ShimStatus(phase=phase, at=time.time()))
        self._folder.write_status(self._status)
        poke(self._order["wake"])

    def _publish_when_possible(self, phase: str) -> None:
        """Publish the status. If the disk is full, the pod continues, and the status is written later."""
        self._status.update(ShimStatus(phase=phase, at=time.time()))
        self._write_again()

    def _write_again(self) -> None:
        try:
            self._folder.write_status(self._status)
        except FileNotFoundError:
            self._written = True  # the folder was removed, so no reader remains
        except OSError:
            self._written = False
        else:
            self._written = True
            poke(self._order["wake"])

    # Processes

    def _spawn(self, argv: list[str], env: dict[str, str], working_dir: str, order: ShimOrder | None = None) -> int:
        """Start a process as the leader of its own session. Returns its pid when it runs. Raises PodStartError.

        `order`: if it is the pod's, whose control groups and sandbox it enters. In a sandbox with namespaces, the pid
        is that of their first process, which writes the exit code of the pod's process to the pipe `_result`.
        """
        sandbox, groups = (order["sandbox"], list(order["groups"])) if order else (None, [])
        reader, writer = os.pipe()
        output, result = self._open_output(), -1
        if sandbox:
            self._result, result = os.pipe()
            init.prepare(sandbox)
            if sandbox["uid"]:
                os.fchown(output, sandbox["uid"], sandbox["uid"])
        listener = commands.listen(self._folder.commands) if sandbox and NAMESPACES in sandbox["layers"] else None
        pid = os.fork()
        if pid == 0:
            program = Program(argv, env, working_dir)
            become(program, output, writer, groups=groups, sandbox=sandbox, result=result, listener=listener)
        if listener:
            listener.close()
        for handle in (writer, output, *([result] if sandbox else [])):
            os.close(handle)
        with os.fdopen(reader, "rb") as failure:
            report = failure.read()
        if report:
            os.waitpid(pid, 0)
            raise _refusal(report.decode(), argv[0], working_dir)
        return pid

    def _open_output(self) -> int:
        """A pipe for the output of a process, which is copied to the log. Returns its writing end.

        With the log itself as its output, a pod could empty it: `echo x > /dev/stderr` does.
        """
        if self._output >= 0:
            os.close(self._output)
        self._output, writer = os.pipe()
        os.set_blocking(self._output, False)
        return writer

    def _copy_output(self) -> bool:
        """Copy a part of the output to the log. Returns whether there may be more now; on a full disk it is lost."""
        try:
            data = os.read(self._output, _CHUNK_BYTES)
        except BlockingIOError:
            return False
        if not data:
            os.close(self._output)
            self._output = -1
            return False
        self._log_clock.mark(self._log)
        with contextlib.suppress(OSError):
            os.write(self._log, data)
        return True

    def _wait(self, leader: int, grace_seconds: float) -> tuple[int, bool]:
        """Wait for `leader`. Returns its exit code (negative: the signal), and whether a stop was requested before."""
        stopped_at: float | None = None
        while True:
            for pid, exit_code in reap():
                if pid == leader:
                    signal_group(leader, signal.SIGKILL)
                    self._kill_descendants()
                    while self._output >= 0 and self._copy_output():
                        pass
                    reported = exit_code if self._result < 0 else init.exit_code(self._result, exit_code)
                    return reported, stopped_at is not None
            grace = self._grace(grace_seconds)
            if grace is not None:
                stopped_at = self._press(leader, stopped_at, grace)
            if not self._written:
                self._write_again()
            self._look_around()
            self._sleep(self._patience(stopped_at, grace))

    def _look_around(self) -> None:
        """What else to do after each signal: follow the CPUs that all pods share, once the pod is on them."""
        if self._cpus and (cpus := self._order.get("cpus")):
            with contextlib.suppress(OSError):  # the next signal repeats it
                self._keep_on_cpus(cpus, cpus["group"])

    def _keep_on_cpus(self, cpus: "CpuOrder", group: str) -> None:
        """Keep the pod on its CPUs. Without a group by affinity, which its processes inherit from this one."""
        from hekla.backends.local import cpusets  # noqa: PLC0415  (pods of most clusters share all CPUs)

        wanted = cpusets.wanted(cpus)
        if wanted != self._cpus:
            if group:
                cpusets.keep_group(group, wanted)
            else:
                cpusets.keep_processes([os.getpid(), *descendants(os.getpid())], wanted)
            self._cpus = wanted

    def _press(self, leader: int, stopped_at: float | None, grace: float) -> float:
        """Send SIGTERM once, and SIGKILL after the grace period. Returns when SIGTERM was sent."""
        if stopped_at is None:
            signal_group(leader, signal.SIGTERM)
            return time.monotonic()
        if time.monotonic() >= stopped_at + grace:
            signal_group(leader, signal.SIGKILL)
            kill(descendants(os.getpid()))
        return stopped_at

    def _patience(self, stopped_at: float | None, grace: float | None) -> float | None:
        """How long to sleep without a signal; None for no limit."""
        if stopped_at is not None and grace is not None:
            return min(RETRY_SECONDS, max(0.02, stopped_at + grace - time.monotonic()))
        return None if self._written else RETRY_SECONDS

    def _grace(self, default: float) -> float | None:
        """The grace period of a stop; None if no stop was requested."""
        request = self._folder.stop_request()
        if request:
            return min(default, request["grace_seconds"])
        return default if self._terminated else None

    def _kill_descendants(self) -> None:
        """Kill the remaining processes of the pod, and wait for their end."""
        give_up_at = time.monotonic() + LAST_KILL_SECONDS
        while has_children() and time.monotonic() < give_up_at:
            kill(descendants(os.getpid()))
            self._sleep(0.02)

    # Signals

    def _watch_signals(self) -> int:
        reader, writer = os.pipe()
        os.set_blocking(reader, False)
        os.set_blocking(writer, False)
        signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
        for number in (signal.SIGCHLD, signal.SIGUSR1):
            signal.signal(number, _ignore)
        signal.signal(signal.SIGTERM, self._terminate)
        for number in (signal.SIGHUP, signal.SIGINT):
            signal.signal(number, signal.SIG_IGN)
        return reader

    def _terminate(self, _number: int, _frame: object) -> None:
        self._terminated = True

    def _sleep(self, seconds: float | None) -> None:
        sources = [self._wakes] if self._output < 0 else [self._wakes, self._output]
        ready, _, _ = select.select(sources, [], [], seconds)
        if self._output in ready:
            self._copy_output()
        with contextlib.suppress(BlockingIOError):
            os.read(self._wakes, 4096)


class Program(NamedTuple):
    """What a process becomes."""

    argv: list[str]
    env: Mapping[str, str]
    working_dir: str

    def execute(self, handles: commands.Handles, failure: int) -> None:
        """Become it, with these standard handles."""
        with _reported("setup", failure):
            for number in (signal.SIGHUP, signal.SIGINT, *_INHERITED_IGNORED):
                signal.signal(number, signal.SIG_DFL)
            for standard, handle in enumerate(handles):
                os.dup2(handle, standard)
            os.umask(0o022)
        with _reported("chdir", failure):
            os.chdir(self.working_dir)
        with _reported("exec", failure):
            os.execvpe(self.argv[0], self.argv, self.env)  # noqa: S606  (a list of arguments, no shell)

    def execute_other(self, argv: list[str], env: Mapping[str, str], handles: commands.Handles, failure: int) -> None:
        """Become another program in the place and with the environment of this one."""
        Program(argv, {**self.env, **env}, self.working_dir).execute(handles, failure)


def become(
    program: Program,
    output: int,
    failure: int,
    *,
    groups: list[str],
    sandbox: SandboxOrder | None,
    result: int,
    listener: "socket | None",
) -> None:
    """In the child: become the pod's process. A failed stage and its error are written to the pipe `failure`."""
    with _reported("setup", failure):
        os.setsid()
        for group in groups:
            cgroups.enter(group)
        nothing = os.open(os.devnull, os.O_RDONLY)
        signal.set_wakeup_fd(-1)
        if sandbox:
            init.enter(sandbox)
        prctl(system.PR_SET_PDEATHSIG, signal.SIGKILL)  # a change of user, as above, undoes it
        if sandbox:
            init.restrict(sandbox)
        start = partial(program.execute, (nothing, output, output), failure)
        if sandbox and NAMESPACES in sandbox["layers"]:
            serve = partial(commands.CommandServer, listener, program.execute_other) if listener else None
            init.run(start, result, listener.fileno() if listener else -1, serve)
        start()


@contextlib.contextmanager
def _reported(stage: str, failure: int) -> Iterator[None]:
    """End the process if this stage fails, and write to the pipe what failed."""
    try:
        yield
    except OSError as error:
        os.write(failure, f"{stage} {error.errno} {error.strerror}".encode())
    except BaseException as error:
        os.write(failure, f"{stage} 0 {error}".encode())
    else:
        return
    os._exit(NOT_FOUND)


def _refusal(report: str, command: str, working_dir: str) -> PodStartError:
    stage, number, sentence = report.split(" ", 2)
    if stage == "chdir":
        return PodStartError("WorkingDirMissing", f"The working folder {working_dir} cannot be entered: {sentence}")
    if stage == "setup":
        return PodStartError("StartRefused", f"The machine could not start it: {sentence}")
    if isinstance(OSError(int(number), ""), FileNotFoundError | NotADirectoryError):
        return PodStartError("CommandNotFound", f"There is no command “{command}” here", NOT_FOUND)
    return PodStartError("CommandNotExecutable", f"The command “{command}” cannot be run: {sentence}", NOT_EXECUTABLE)


def reap() -> list[tuple[int, int]]:
    """Children that ended since the last call: pid and exit code (negative: the signal)."""
    ended = []
    with contextlib.suppress(ChildProcessError):
        while (found := os.waitpid(-1, os.WNOHANG))[0]:
            ended.append((found[0], os.waitstatus_to_exitcode(found[1])))
    return ended


def has_children() -> bool:
    """Whether a child still runs. Reaps ended children first."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return False
    return True


def prctl(option: int, value: int) -> None:
    """Call Linux's prctl. On other systems, only the process group keeps a pod's processes together."""
    if sys.platform == "linux":
        system.prctl(option, value)


def _ignore(_number: int, _frame: object) -> None:
    """A handler without effect, because the wake-up pipe reports the signal. Ignoring SIGCHLD would reap children."""
