"""Runs in a pod, with its Python: starts, looks at or ends a tool. One JSON object on standard input, one on output.

Input: `do` (start, look or end), `session`, and for a start `tool` and `secret`, else `process`. Output: `port` and
`process`; or `alive`; always `text`, the last lines of the tool. `missing`: the tool is not installed here.

It needs nothing but Python 3.7. The secret is in the environment of the tool, never among its arguments.
"""

from __future__ import annotations

import importlib.util
import ipaddress
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from typing import Any

MARK = "HEKLA_TOOL_SESSION"
TENSORBOARD = """
import os, sys
from tensorboard.main import run_main
sys.argv[1:] += ["--path_prefix", "/" + os.environ.pop("HEKLA_TOOL_SECRET")]
sys.exit(run_main())
"""
_TEXT_BYTES = 3000


def main() -> None:
    """Answer one request."""
    request = json.loads(sys.stdin.readline())
    answer = {"start": start, "look": look, "end": end}[request["do"]](request)
    answer["text"] = _last_lines(request["session"])
    print(json.dumps(answer))


def start(request: dict[str, Any]) -> dict[str, Any]:
    """Start the tool on a free port of the pod."""
    if importlib.util.find_spec(request["tool"]) is None:
        return {"missing": True}
    address = _address()
    with socket.socket() as probe:
        probe.bind((address, 0))
        port = probe.getsockname()[1]
    with open(_log_path(request["session"]), "wb") as log:
        process = subprocess.Popen(
            _command(request["tool"], address, port),
            env=dict(
                os.environ,
                JUPYTER_TOKEN=request["secret"],
                HEKLA_TOOL_SECRET=request["secret"],
                **{MARK: request["session"]},
            ),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    return {"port": port, "process": process.pid}


def look(request: dict[str, Any]) -> dict[str, Any]:
    """Whether the tool runs."""
    return {"alive": _is_alive(request)}


def end(request: dict[str, Any]) -> dict[str, Any]:
    """End the tool and what it started: at first politely."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        if not _is_alive(request):
            break
        os.killpg(request["process"], number)
        deadline = time.monotonic() + 4
        while _is_alive(request) and time.monotonic() < deadline:
            time.sleep(0.05)
    return {"alive": _is_alive(request)}


def _command(tool: str, address: str, port: int) -> list[str]:
    if tool == "tensorboard":
        options = ["--logdir", ".", "--host", address, "--port", str(port)]
        return [sys.executable, "-c", TENSORBOARD, *options]
    options = ["--no-browser", "--ip=" + address, "--port=" + str(port), "--ServerApp.port_retries=0"]
    options += ["--ServerApp.root_dir=" + os.getcwd(), "--ServerApp.quit_button=False"]
    options += ["--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate"]
    if os.getuid() == 0:
        options.append("--allow-root")
    return [sys.executable, "-m", "jupyterlab", *options]


def _address() -> str:
    """The pod's own address, if it is one; in a network of its own, that of the pod alone."""
    try:
        return str(ipaddress.ip_address(os.environ.get("HEKLA_POD_ADDRESS", "")))
    except ValueError:
        return "127.0.0.1"


def _is_alive(request: dict[str, Any]) -> bool:
    """Whether the process is that of the session: numbers of ended processes are used again."""
    try:
        with open(f"/proc/{int(request['process'])}/environ", "rb") as environ:
            return f"{MARK}={request['session']}".encode() in environ.read().split(b"\0")
    except OSError:
        return False


def _log_path(session: str) -> str:
    for place in (os.getcwd(), tempfile.gettempdir()):
        folder = os.path.join(place, ".hekla-tools")
        try:
            os.makedirs(folder, mode=0o700, exist_ok=True)
        except OSError:
            continue
        if os.access(folder, os.W_OK):
            return os.path.join(folder, session + ".log")
    raise SystemExit("The working folder and the folder for temporary files cannot be written.")


def _last_lines(session: str) -> str:
    try:
        with open(_log_path(session), "rb") as log:
            log.seek(max(0, os.fstat(log.fileno()).st_size - _TEXT_BYTES))
            return log.read().decode(errors="replace")
    except OSError:
        return ""


if __name__ == "__main__":
    main()
