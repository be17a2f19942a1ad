"""Valkey as a child process: a socket, no port, no files."""

import subprocess
import time
from pathlib import Path

import redis

from hekla.launcher.embedded import Valkey
from hekla.launcher.embedded.rundir import run_dir


def test_server_answers_on_its_socket_and_writes_no_files(tmp_path: Path) -> None:
    server = Valkey(run_dir(tmp_path))
    server.prepare()
    process = server.start(subprocess.DEVNULL)
    while not server.is_ready(process.pid):
        assert process.poll() is None
        time.sleep(0.01)
    with redis.from_url(server.url) as client:
        client.set("key", "value")
        options = client.config_get("port", "save", "appendonly", "maxmemory-policy")
    assert options == {"port": "0", "save": "", "appendonly": "no", "maxmemory-policy": "noeviction"}
    process.send_signal(server.stop_signal)
    assert process.wait(10) == 0
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == []


def test_leftover_socket_of_a_killed_server_is_removed(tmp_path: Path) -> None:
    server = Valkey(run_dir(tmp_path))
    process = server.start(subprocess.DEVNULL)
    while not server.is_ready(process.pid):
        time.sleep(0.01)
    process.kill()
    process.wait()
    assert server.socket.exists()
    server.prepare()
    assert not server.socket.exists()
    assert not server.is_ready(process.pid)
