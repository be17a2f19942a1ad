"""nginx with one process as a plain proxy before the program in the pod, for comparison. It checks no rights."""

import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hekla.bench.proxy.requests import Endpoint
from hekla.cli.client import Failure

_START_SECONDS = 10.0
_SETTINGS = """
daemon off; master_process off; worker_processes 1; pid {folder}/pid; error_log {folder}/errors;
events {{ worker_connections 4096; }}
http {{
  access_log off; client_max_body_size 0; keepalive_requests 1000000;
  client_body_temp_path {folder}/1; proxy_temp_path {folder}/2; fastcgi_temp_path {folder}/3;
  uwsgi_temp_path {folder}/4; scgi_temp_path {folder}/5;
  upstream pod {{ server {host}:{pod_port}; keepalive 64; }}
  server {{
    listen 127.0.0.1:{port};
    location / {{
      proxy_pass http://pod; proxy_http_version 1.1; proxy_set_header Connection "";
      proxy_request_buffering off; proxy_max_temp_file_size 0;
    }}
  }}
}}
"""


@contextmanager
def nginx(program: str, to: Endpoint) -> Iterator[tuple[Endpoint, int]]:
    """Start it on a free port, and end it afterwards. Yields where it listens, and its process. Raises Failure."""
    folder = Path(tempfile.mkdtemp(prefix="hekla-bench-nginx-"))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = int(free.getsockname()[1])
    facts = {"folder": folder, "host": to.host, "pod_port": to.port, "port": port}
    settings = folder / "nginx.conf"
    settings.write_text(_SETTINGS.format(**facts))
    argv = [program, "-p", str(folder), "-c", str(settings), "-e", str(folder / "errors")]
    process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, env=dict(os.environ))
    try:
        _wait(process, port, folder / "errors")
        yield Endpoint("127.0.0.1", port, f"127.0.0.1:{port}"), process.pid
    finally:
        process.terminate()
        process.wait(_START_SECONDS)
        shutil.rmtree(folder, ignore_errors=True)


def _wait(process: "subprocess.Popen[bytes]", port: int, errors: Path) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while process.poll() is None and time.monotonic() < deadline:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            time.sleep(0.05)
        else:
            return
    text = errors.read_text(errors="replace")[-500:] if errors.exists() else ""
    raise Failure(f"nginx did not start. {text}")
