"""Runs in a pod, with its Python: starts, looks at or ends a tool. One JSON object on standard input, one on output.

Input: `do` (start, look or end), `session`, and for a start `tool` and `secret`, else `process`; 0 if that is unknown.
A start can have `base`, the path below which JupyterLab is, `bundle`, a ZIP file in base64 with the Python client, and
`env` for its settings and its token.
Output: `port` and `process`; or `alive`; always `text`, the last lines of the tool. `missing`: it is not installed.

It needs nothing but Python 3.7. The secret is in the environment of the tool, never among its arguments.
"""

from __future__ import annotations

import base64
import contextlib
import importlib.util
import io
import ipaddress
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import zipfile
from typing import Any

MARK = "HEKLA_TOOL_SESSION"
CODE_SERVER = "code-server"
TENSORBOARD = """
import os, sys
from tensorboard.main import run_main
sys.argv[1:] += ["--path_prefix", "/" + os.environ.pop("HEKLA_TOOL_SECRET")]
sys.exit(run_main())
"""
JUPYTERLAB = """
import runpy, sys
sys.modules["rfc3987_syntax"] = None
runpy.run_module("jupyterlab", run_name="__main__", alter_sys=True)
"""
"""Without a grammar that JupyterLab never uses: the checks of JSON schemas leave out what cannot be imported, and this
import takes two thirds of the CPU of a start.
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
    program = _program(request["tool"])
    if not program:
        return {"missing": True}
    address = _address()
    with socket.socket() as probe:
        probe.bind((address, 0))
        port = probe.getsockname()[1]
    with open(_log_path(request["session"]), "wb") as log:
        process = subprocess.Popen(
            [*program, *_options(request, address, port)],
            env={**os.environ, **_environment(request), MARK: request["session"]},
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
    """End the tool and all that it started: at first politely."""
    _signal_all(request["session"], signal.SIGTERM)
    has_ended = _ends(request["session"], 0) or _ends(request["session"], signal.SIGKILL)
    shutil.rmtree(_bundle_folder(request["session"]), ignore_errors=True)
    return {"alive": not has_ended}


def _program(tool: str) -> list[str]:
    """The command that runs the tool, without options; empty if it is not installed."""
    if tool == CODE_SERVER:
        found = shutil.which(tool) or shutil.which(tool, path=os.path.join(os.getcwd(), "node_modules", ".bin"))
        return [found] if found else []
    if importlib.util.find_spec(tool) is None:
        return []
    return [sys.executable, "-c", TENSORBOARD if tool == "tensorboard" else JUPYTERLAB]


def _environment(request: dict[str, Any]) -> dict[str, str]:
    """What the tool has in its environment besides that of the pod, with the secret that it demands."""
    secret = request["secret"]
    if request["tool"] == CODE_SERVER:  # it demands a cookie with this value, and takes it out of the environment
        return {"HASHED_PASSWORD": secret, "CS_DISABLE_GETTING_STARTED_OVERRIDE": "1", "VSCODE_IPC_HOOK_CLI": ""}
    return {"JUPYTER_TOKEN": secret, "HEKLA_TOOL_SECRET": secret, **_client_environment(request)}


def _client_environment(request: dict[str, Any]) -> dict[str, str]:
    """Unpack the Python client beside the tool, and return the variables by which the tool and its kernels find it.

    Empty without one, if this Python is too old for it, or if it cannot be written: the tool starts anyway.
    """
    if not request.get("bundle") or sys.version_info < (3, 11):
        return {}
    folder = _bundle_folder(request["session"])
    try:
        os.makedirs(folder, mode=0o700)
        with zipfile.ZipFile(io.BytesIO(base64.b64decode(request["bundle"]))) as archive:
            archive.extractall(folder)
    except OSError:
        return {}
    added = {
        "PYTHONPATH": os.path.join(folder, "python"),
        "JUPYTER_PATH": os.path.join(folder, "share", "jupyter"),
        "JUPYTER_CONFIG_PATH": os.path.join(folder, "etc", "jupyter"),
    }
    paths = {name: os.pathsep.join(filter(None, (path, os.environ.get(name)))) for name, path in added.items()}
    startup = {
        "HEKLA_PYTHONSTARTUP": os.environ.get("PYTHONSTARTUP", ""),
        "PYTHONSTARTUP": os.path.join(folder, "startup.py"),
    }
    return {**paths, **startup, **request["env"]}


def _bundle_folder(session: str) -> str:
    return os.path.splitext(_log_path(session))[0]


def _options(request: dict[str, Any], address: str, port: int) -> list[str]:
    if request["tool"] == "tensorboard":
        return ["--logdir", ".", "--host", address, "--port", str(port)]
    if request["tool"] == CODE_SERVER:
        return _code_server_options(_bundle_folder(request["session"]), address, port)
    options = ["--no-browser", "--ip=" + address, "--port=" + str(port), "--ServerApp.port_retries=0"]
    options += ["--ServerApp.root_dir=" + os.getcwd(), "--ServerApp.quit_button=False"]
    options += ["--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate"]
    if request.get("base"):
        options.append("--ServerApp.base_url=" + request["base"] + "/")
    if os.getuid() == 0:
        options.append("--allow-root")
    return options


def _code_server_options(folder: str, address: str, port: int) -> list[str]:
    """Nobody types a password, no configuration of the pod changes that, and it sends and looks up nothing."""
    os.makedirs(folder, mode=0o700)
    config = os.path.join(folder, "code-server.yaml")
    with open(config, "w") as file:
        file.write("auth: password\ncert: false\n")
    options = ["--config=" + config, "--host=" + address, "--port=" + str(port), "--auth=password"]
    options += ["--trusted-origins=localhost:" + str(port), "--disable-telemetry", "--disable-update-check"]
    options += ["--disable-workspace-trust"]  # of the folder of this very pod, whose programs run anyway
    data = os.path.join(os.environ.get("XDG_DATA_HOME") or os.path.expanduser("~/.local/share"), CODE_SERVER)
    try:
        os.makedirs(data, exist_ok=True)
        is_writable = os.access(data, os.W_OK)
    except OSError:
        is_writable = False
    if not is_writable:
        options.append("--user-data-dir=" + os.path.join(folder, "data"))
    return [*options, os.getcwd()]


def _address() -> str:
    """The pod's own address, if it is one; in a network of its own, that of the pod alone."""
    try:
        return str(ipaddress.ip_address(os.environ.get("HEKLA_POD_ADDRESS", "")))
    except ValueError:
        return "127.0.0.1"


def _is_alive(request: dict[str, Any]) -> bool:
    """Whether the process is that of the session: numbers of ended processes are used again."""
    if request["process"]:
        return _is_marked(int(request["process"]), request["session"])
    return bool(_processes(request["session"]))


def _processes(session: str) -> list[int]:
    """The processes of the tool. What a tool starts inherits its mark."""
    numbers = [int(name) for name in os.listdir("/proc") if name.isdigit()]
    return [number for number in numbers if _is_marked(number, session)]


def _is_marked(process: int, session: str) -> bool:
    try:
        with open(f"/proc/{process}/environ", "rb") as environ:
            return f"{MARK}={session}".encode() in environ.read().split(b"\0")
    except OSError:
        return False


def _ends(session: str, number: int) -> bool:
    """Whether all processes of the tool end within seconds. They get this signal, also those that come meanwhile."""
    deadline = time.monotonic() + 4
    while _signal_all(session, number):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def _signal_all(session: str, number: int) -> bool:
    """Send a signal, or 0 for none, to all processes of the tool. Returns whether there were any."""
    found = _processes(session)
    for process in found:
        with contextlib.suppress(ProcessLookupError):  # it has ended meanwhile
            os.kill(process, number)
    return bool(found)


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
