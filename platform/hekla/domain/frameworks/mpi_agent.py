"""Starts the ranks of MPI in the pods of workers, where `mpirun` would take ssh. It goes into pods as a file.

Without arguments it serves in a worker until it is ended; where workers have machines of their own it becomes an sshd.
As `mpi_agent.py HOST COMMAND…`, which is how mpirun calls it among pods of one machine and one user, it has the worker
at HOST run the command, with the caller's input and outputs, and ends as the command does. What it starts is the
worker's own: it counts for that pod and ends with it.
"""

import array
import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import threading
import time

PATIENCE_SECONDS = 300.0
LONGEST_COMMAND = 128 * 1024
PORT = "HEKLA_SSH_PORT"


def main(arguments: list[str]) -> int:
    if not arguments:
        host = os.environ.get("HEKLA_POD_ADDRESS")
        return serve(host) if host else become_sshd(os.environ.get(PORT, "22"), os.environ.get("HOME", "/root"))
    return call(arguments[0], " ".join(arguments[1:]))


def become_sshd(port: str, home: str) -> int:
    """Serve by ssh, to whoever proves to be of the job by its keys; with those as its own, or else the image's."""
    sshd = shutil.which("sshd") or shutil.which("sshd", path="/usr/sbin:/usr/local/sbin")
    if sshd is None:
        sys.exit("there is no sshd in this image, by which mpirun could start ranks in it")
    if os.getuid() == 0:
        os.makedirs("/run/sshd", mode=0o755, exist_ok=True)
    key = os.path.join(home, ".ssh", "id_ed25519")
    print(f"waiting at port {port} for what mpirun starts", flush=True)
    options = ["-D", "-e", "-f", "/dev/null", "-p", port, "-o", "PasswordAuthentication=no"]
    os.execv(sshd, [sshd, *options, *(["-h", key] if os.path.exists(key) else [])])  # noqa: S606


def serve(host: str) -> int:
    """Run what callers ask for, each beside the others."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind(_name(host))
        listener.listen(64)
        print(f"waiting at {host} for what mpirun starts", flush=True)
        while True:
            caller = listener.accept()[0]
            threading.Thread(target=_run, args=[caller], daemon=True).start()


def call(host: str, command: str) -> int:
    """Have the worker at that host run a command line of the shell. Answers its exit code."""
    with _connected(host) as worker:
        streams = array.array("i", [0, 1, 2])
        worker.sendmsg([command.encode()], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, streams)])
        answer = worker.recv(1)
    if not answer:
        sys.exit(f"the worker at {host} has ended")
    return answer[0]


def _run(caller: socket.socket) -> None:
    with caller:
        if _user_of(caller) != os.getuid():
            return
        command, streams, _, _ = socket.recv_fds(caller, LONGEST_COMMAND, 3)
        process = subprocess.Popen(
            ["/bin/sh", "-c", command], stdin=streams[0], stdout=streams[1], stderr=streams[2], process_group=0
        )
        for stream in streams:
            os.close(stream)
        threading.Thread(target=_end_with, args=[caller, process], daemon=True).start()
        code = process.wait()
        caller.send(bytes([code if code >= 0 else 128 - code]))


def _end_with(caller: socket.socket, process: "subprocess.Popen[bytes]") -> None:
    """A caller says nothing more; when it is gone, so is what it asked for."""
    try:
        caller.recv(1)
        os.killpg(process.pid, signal.SIGTERM)
    except OSError:
        return


def _connected(host: str) -> socket.socket:
    """The worker's door, for which one waits while its pod is made ready."""
    worker = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            worker.connect(_name(host))
        except OSError as error:
            if time.monotonic() > deadline:
                sys.exit(f"no worker waits at {host}: {error}")
            time.sleep(0.1)
        else:
            break
    if _user_of(worker) != os.getuid():
        sys.exit(f"another user waits at {host}")
    return worker


def _name(host: str) -> str:
    """A socket's name that is no file, so that nothing of it is left behind."""
    return f"\0hekla/mpi/{host}"


def _user_of(other: socket.socket) -> int:
    size = struct.calcsize("3i")
    return int(struct.unpack("3i", other.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size))[1])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
