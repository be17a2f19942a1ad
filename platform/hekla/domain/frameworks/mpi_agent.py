"""Starts MPI ranks in worker pods, in place of the ssh that `mpirun` would use. This file is copied into pods.

Without arguments it serves in a worker until it is ended; if workers have machines of their own, it becomes an sshd.
`mpi_agent.py HOST COMMAND…` is what mpirun calls among pods of one machine and one user: the worker at HOST runs the
command with the caller's input and outputs, and this process exits with its exit code. The command is a process of the
worker: it counts for that pod and ends with it.
"""

import array
import contextlib
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
RUN_FOLDER = "/run/job"
"""In the sandbox of one machine, the pods of a job share this folder."""


def main(arguments: list[str]) -> int:
    if not arguments:
        host = os.environ.get("HEKLA_POD_ADDRESS")
        return serve(host) if host else become_sshd(os.environ.get(PORT, "22"), os.environ.get("HOME", "/root"))
    return call(arguments[0], " ".join(arguments[1:]))


def become_sshd(port: str, home: str) -> int:
    """Become an sshd for clients with the job's key. Its host key is the job's key too, or else the image's."""
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
    """Run the commands of callers in parallel."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        name = _name(host)
        with contextlib.suppress(OSError, ValueError):
            os.unlink(name)  # of an earlier attempt
        listener.bind(name)
        listener.listen(64)
        print(f"waiting at {host} for what mpirun starts", flush=True)
        while True:
            caller = listener.accept()[0]
            threading.Thread(target=_run, args=[caller], daemon=True).start()


def call(host: str, command: str) -> int:
    """Run a shell command line in the worker at that host. Returns its exit code."""
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
    """End the command when its caller is gone. (Callers send nothing more.)"""
    try:
        caller.recv(1)
        os.killpg(process.pid, signal.SIGTERM)
    except OSError:
        return


def _connected(host: str) -> socket.socket:
    """A connection to the worker; waits up to PATIENCE_SECONDS for a pod that is still being prepared."""
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
    """A socket in the folder that the pods of a job share, or else an abstract name, which the sandbox forbids."""
    return f"{RUN_FOLDER}/mpi-{host}" if os.access(RUN_FOLDER, os.W_OK) else f"\0hekla/mpi/{host}"


def _user_of(other: socket.socket) -> int:
    size = struct.calcsize("3i")
    return int(struct.unpack("3i", other.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size))[1])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
