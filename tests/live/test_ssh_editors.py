"""The steps of an editor that works over SSH, such as VS Code with Remote-SSH, taken by the clients of OpenSSH.

No editor runs here: a small server that answers in capital letters stands in for the one that an editor installs. The
steps are those of Remote-SSH: copy the server, write a script into a shell that stays open and forwards (`-D`), read
the port from its output, connect by SOCKS and by `-L`, lose the connection, and find the same server again.
"""

import re
import shutil
import socket
import subprocess
import threading
import time
from pathlib import Path

import pytest
from tests.controller.conftest import World, one_machine, world
from tests.live.test_ssh import PATIENCE_SECONDS, SERVER, Machine, alice, connected, free_port, url
from tests.live.test_terminals import run_pod

__all__ = ["one_machine", "url", "world"]
pytestmark = [
    pytest.mark.skipif(not shutil.which("ssh"), reason="no OpenSSH client on this machine"),
    pytest.mark.parametrize("world", ["local"], indirect=True),
]
BOOTSTRAP = """\
set -e
echo "platform==$(uname -s)=="
folder="$HOME/.editor-server/bin/0123abcd"
mkdir -p "$folder"
[ -e "$folder/server.py" ] || mv "$HOME/server.py" "$folder/server.py"
if ! { [ -s "$folder/pid" ] && kill -0 "$(cat "$folder/pid")" 2>/dev/null; }; then
  nohup python3 -u "$folder/server.py" 127.0.0.1 > "$folder/log" 2>&1 < /dev/null &
  echo $! > "$folder/pid"
fi
until [ -s "$folder/log" ]; do sleep 0.05; done
echo "listeningOn==$(cat "$folder/log")=="
echo "pid==$(cat "$folder/pid")=="
while :; do sleep 60; done
"""
SOCKS_HELLO, SOCKS_READY = b"\x05\x01\x00", b"\x05\x00"


def test_editor_finds_its_server_again(world: World, url: str, tmp_path: Path) -> None:
    run_pod(world)
    own, server = alice(url, world, tmp_path), tmp_path / "server.py"
    server.write_text(SERVER)
    copied = own.run("scp", "-F", str(own.config), str(server), "talk.hekla:")
    assert copied.returncode == 0, copied

    first = _connect(own)
    local = free_port()  # the first connection is lost; the second one forwards a port of its own too
    second = _connect(own, "-L", f"{local}:localhost:{first['listeningOn']}", forwarded=local)
    assert first == second
    assert first["platform"] == "Linux"


def _connect(own: Machine, *more: str, forwarded: int = 0) -> dict[str, str]:
    """What the script says. Several connections by SOCKS go through the shell that runs it, until it is killed.

    `more`: options that forward a port of the pod to the port `forwarded` of this machine.
    """
    local = free_port()
    with own.started("-T", "-D", str(local), "-o", "ConnectTimeout=15", *more, "talk.hekla", "bash") as shell:
        assert shell.stdin is not None
        shell.stdin.write(BOOTSTRAP.encode())
        shell.stdin.flush()  # it stays open: the script ends with the connection
        found = _facts(shell)
        answers: list[bytes] = []
        threads = [threading.Thread(target=_call, args=(local, found, n, answers)) for n in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(PATIENCE_SECONDS)
        assert sorted(answers) == [b"CHANNEL %d" % number for number in range(6)]
        if forwarded:
            with connected(forwarded) as client:
                client.sendall(b"by a forwarded port")
                assert client.recv(100) == b"BY A FORWARDED PORT"
    return found


def _facts(shell: subprocess.Popen[bytes]) -> dict[str, str]:
    assert shell.stdout is not None
    found: dict[str, str] = {}
    limit = time.monotonic() + PATIENCE_SECONDS
    while "pid" not in found:
        assert time.monotonic() < limit, found
        match = re.fullmatch(r"(\w+)==(\w+)==\n", shell.stdout.readline().decode())
        assert match is not None
        found[match[1]] = match[2]
    return found


def _call(local: int, found: dict[str, str], number: int, answers: list[bytes]) -> None:
    """One request to the server in the pod, by the SOCKS server of `ssh -D`."""
    with connected(local) as client:
        client.settimeout(PATIENCE_SECONDS)
        client.sendall(SOCKS_HELLO)
        assert client.recv(2) == SOCKS_READY
        client.sendall(b"\x05\x01\x00\x01" + socket.inet_aton("127.0.0.1") + int(found["listeningOn"]).to_bytes(2))
        assert client.recv(10, socket.MSG_WAITALL)[1] == 0
        client.sendall(b"channel %d" % number)
        answers.append(client.recv(100))
