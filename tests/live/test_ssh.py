"""SSH to pods with the clients of OpenSSH, through a web process and `hekla ssh-proxy`."""

import asyncio
import fcntl
import hashlib
import os
import pty
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

import httpx2
import pytest
import uvicorn
from asgiref.sync import sync_to_async
from channels.routing import ProtocolTypeRouter
from django.db import connections as database
from tests.controller.conftest import World, one_machine, world
from tests.kubernetes.control_plane import ControlPlane
from tests.kubernetes.plugin import grant_in_namespace
from tests.live.test_terminals import member, run_pod

from hekla.apps.accounts import services as accounts
from hekla.apps.accounts.models import ApiToken, User
from hekla.apps.accounts.scopes import Scope
from hekla.apps.audit.sentences import sentence
from hekla.apps.event_log.models import LoggedEvent
from hekla.apps.event_log.services import PLATFORM
from hekla.apps.jobs import services
from hekla.apps.jobs.models import Pod
from hekla.apps.tenancy import services as tenancy
from hekla.domain.policies import LifecycleAction
from hekla.lib import clock
from hekla.live import guard
from hekla.live.routing import application
from hekla.live.ssh import connections
from hekla.live.websockets import lifespan

__all__ = ["one_machine", "world"]
PLATFORM_FOLDER = Path(__file__).parents[2] / "platform"
PATIENCE_SECONDS = 30.0
MIB = 2**20
SERVER = """\
import socket, sys
server = socket.create_server((sys.argv[1], 0))
print(server.getsockname()[1], flush=True)
while True:
    client = server.accept()[0]
    client.sendall(client.recv(100).upper())
    client.close()
"""
pytestmark = pytest.mark.skipif(not shutil.which("ssh"), reason="no OpenSSH client on this machine")
only_local = pytest.mark.parametrize("world", ["local"], indirect=True)


@dataclass
class Machine:
    """A person's own machine: its configuration folder, and a token of theirs."""

    url: str
    home: Path
    user: User
    scopes: set[Scope] = field(default_factory=lambda: {Scope.JOBS})

    def __post_init__(self) -> None:
        self.home.mkdir()
        self.token = accounts.create_token(
            self.user, name="ssh", lifetime=timedelta(hours=1), scopes=self.scopes, now=clock.now()
        )
        self.hekla("ssh-config", check=True)
        self.config = self.home / ".config" / "hekla" / "ssh_config"

    @property
    def env(self) -> dict[str, str]:
        own = {"HOME": str(self.home), "XDG_CONFIG_HOME": str(self.home / ".config"), "HEKLA_TOKEN": self.token}
        return os.environ | own | {"HEKLA_SERVER": self.url, "PYTHONPATH": str(PLATFORM_FOLDER)}

    def hekla(self, *words: str, **more: object) -> subprocess.CompletedProcess[bytes]:
        return self.run(sys.executable, "-m", "hekla.cli", *words, **more)

    def ssh(self, *words: str, **more: object) -> subprocess.CompletedProcess[bytes]:
        return self.run("ssh", "-F", str(self.config), *words, **more)

    def run(self, *words: str, **more: object) -> subprocess.CompletedProcess[bytes]:
        facts = {"env": self.env, "capture_output": True, "timeout": PATIENCE_SECONDS, **more}
        return subprocess.run(words, check=bool(facts.pop("check", False)), **facts)

    @contextmanager
    def started(self, *words: str) -> Iterator[subprocess.Popen[bytes]]:
        """An `ssh` that goes on beside the block."""
        pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
        with subprocess.Popen(["ssh", "-F", str(self.config), *words], env=self.env, **pipes) as process:
            try:
                yield process
            finally:
                process.kill()

    @contextmanager
    def terminal(self, *words: str) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
        """An `ssh` in a terminal, and the other end of it."""
        mine, of_ssh = pty.openpty()
        set_size(mine, 101, 31)
        command = ["ssh", "-tt", "-F", str(self.config), *words]
        process = subprocess.Popen(command, env=self.env, stdin=of_ssh, stdout=of_ssh, stderr=of_ssh)
        os.close(of_ssh)
        try:
            yield process, mine
        finally:
            process.kill()
            process.wait()
            os.close(mine)


@pytest.fixture
def url(world: World, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The address of a web process: its own thread and event loop, with real sockets."""
    monkeypatch.setattr(guard, "EVERY_SECONDS", 0.2)
    monkeypatch.setattr(connections, "LOOK_EVERY_SECONDS", 0.2)
    served = ProtocolTypeRouter({"websocket": application, "lifespan": lifespan})
    config = uvicorn.Config(served, port=0, log_level="warning", ws="websockets-sansio", timeout_graceful_shutdown=1)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=_serve, args=(server,))
    thread.start()
    limit = time.monotonic() + PATIENCE_SECONDS
    while not server.started:
        assert thread.is_alive()
        assert time.monotonic() < limit
        time.sleep(0.01)
    yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    server.should_exit = True
    thread.join(PATIENCE_SECONDS)
    for one in threading.enumerate():
        if one.name.startswith("live"):
            one.join(PATIENCE_SECONDS)


def _serve(server: uvicorn.Server) -> None:
    async def whole() -> None:
        await server.serve()
        await sync_to_async(database.close_all)()

    asyncio.run(whole())


def alice(url: str, world: World, tmp_path: Path) -> Machine:
    return Machine(url, tmp_path / "alice", world.alice)


def set_size(terminal: int, columns: int, rows: int) -> None:
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


def type_until(terminal: int, line: str, answer: str) -> None:
    """Types, and reads until this is printed, not as the echo of what was typed."""
    os.write(terminal, line.encode())
    text, limit = "", time.monotonic() + PATIENCE_SECONDS
    while answer not in text.replace(line.strip(), ""):
        assert time.monotonic() < limit, text
        if select.select([terminal], [], [], 0.1)[0]:
            text += os.read(terminal, 4096).decode(errors="replace")


@contextmanager
def answering_server() -> Iterator[int]:
    """The program that pods run, on this machine."""
    with subprocess.Popen([sys.executable, "-c", SERVER, "127.0.0.1"], stdout=subprocess.PIPE) as process:
        try:
            yield int(process.stdout.readline())
        finally:
            process.kill()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def connected(port: int) -> socket.socket:
    """A connection, once something listens."""
    limit = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            return socket.create_connection(("127.0.0.1", port))
        except ConnectionRefusedError:
            assert time.monotonic() < limit
            time.sleep(0.05)


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


@only_local
def test_commands_files_and_ports(world: World, url: str, tmp_path: Path) -> None:
    """What people do with SSH, one after the other in one pod."""
    pod, own = run_pod(world), alice(url, world, tmp_path)

    ended = own.ssh("talk.hekla", "echo out; echo err >&2; pwd; exit 7")
    assert (ended.stdout, ended.stderr, ended.returncode) == (b"out\n/home/pod\n", b"err\n", 7)
    by_command = own.hekla("ssh", "--pod", "main-0", "talk", "echo", "-n", "$((40 + 2))")
    assert (by_command.stdout, by_command.returncode) == (b"42", 0)

    data = os.urandom(10 * MIB)
    echoed = own.ssh("talk.main-0.hekla", "cat", input=data)
    assert digest(echoed.stdout) == digest(data)
    shell = own.ssh("-T", f"{pod.job.uid}.hekla", input=b"echo in $0\nexit 3\n")
    assert shell.returncode == 3
    assert b"in " in shell.stdout

    source, folder = tmp_path / "source", tmp_path / "folder"
    source.write_bytes(data)
    folder.mkdir()
    for number in range(20):
        (folder / f"f{number}.txt").write_text(str(number))
    copied = own.run("scp", "-F", str(own.config), str(source), "talk.hekla:copy")
    assert copied.returncode == 0, copied
    steps = ("ls -l", "get copy back", "mkdir d", "put back d/again", "rename d/again d/b", "chmod 600 d/b")
    batch = "\n".join((*steps, "symlink b d/l", "ls d", "rm copy", "")).encode()
    listed = own.run("sftp", "-F", str(own.config), "-b", "-", "talk.hekla", input=batch, cwd=tmp_path)
    assert listed.returncode == 0, listed
    assert digest((tmp_path / "back").read_bytes()) == digest(data)
    assert own.ssh("talk.hekla", "stat -c %a d/b; readlink d/l; ls").stdout == b"600\nb\nd\n"

    if shutil.which("rsync"):
        shell_of_rsync = f"ssh -F {own.config}"
        copied = own.run("rsync", "-a", "-e", shell_of_rsync, f"{folder}/", "talk.hekla:folder/")
        assert copied.returncode == 0, copied
        assert own.ssh("talk.hekla", "cat folder/f19.txt").stdout == b"19"


@only_local
def test_terminals_and_ports(world: World, url: str, tmp_path: Path) -> None:
    """A terminal with its size, and connections to ports of the pod but to nothing else."""
    run_pod(
        world, 'python3 -c "$SERVER" 0.0.0.0 > far & python3 -c "$SERVER" 127.0.0.1 > near & sleep 1000', SERVER=SERVER
    )
    own = alice(url, world, tmp_path)

    with own.terminal("talk.hekla") as (shell, mine):
        type_until(mine, "PS1='ready''> '; stty size\n", "31 101")
        set_size(mine, 90, 20)
        os.kill(shell.pid, signal.SIGWINCH)
        type_until(mine, "until [ \"$(stty size)\" = '20 90' ]; do sleep 0.1; done; echo $((40 + 2))\n", "42")
        type_until(mine, "echo $((7000 + 1)); sleep 100\n", "7001")
        type_until(mine, "\x03", "ready> ")  # a shell drops what is typed before
        os.write(mine, b"exit 5\n")
        assert shell.wait(PATIENCE_SECONDS) == 5

    ports = own.ssh("talk.hekla", "until [ -s far ] && [ -s near ]; do sleep 0.1; done; cat far near").stdout.split()
    for port in map(int, ports):
        assert own.ssh("-W", f"localhost:{port}", "talk.hekla", input=b"hello").stdout == b"HELLO"
    for place in (f"127.0.0.2:{ports[0].decode()}", "169.254.169.254:80", "localhost.evil.example:80"):
        refused = own.ssh("-W", place, "talk.hekla")
        assert refused.returncode == 255
        assert b"administratively prohibited" in refused.stderr, refused
    assert b"Nothing listens" in own.ssh("-W", "localhost:1", "talk.hekla").stderr
    local = free_port()
    with own.started(
        "-L", f"{local}:localhost:{ports[0].decode()}", "-R", "0:localhost:1", "talk.hekla", "cat"
    ) as beside:
        with connected(local) as client:
            client.sendall(b"again")
            assert client.recv(100) == b"AGAIN"
        beside.stdin.close()
        assert beside.wait(PATIENCE_SECONDS) == 0
        assert b"remote port forwarding failed" in beside.stderr.read()


@only_local
def test_lost_rights_revoked_tokens_and_ended_pods_cut_connections(world: World, url: str, tmp_path: Path) -> None:
    """Within seconds, also where nothing is sent."""
    bob, carol = member(world, "bob", "admin"), member(world, "carol", "admin")
    pod = run_pod(world)
    acts = {"actor": PLATFORM, "now": clock.now()}
    machines = [Machine(url, tmp_path / user.username, user) for user in (world.alice, bob, carol)]
    with ExitStack() as stack:
        of_alice, of_bob, of_carol = [
            stack.enter_context(one.started("talk.hekla", "echo in; cat")) for one in machines
        ]
        forwarding = stack.enter_context(machines[0].started("-N", "talk.hekla"))
        for process in (of_alice, of_bob, of_carol):
            assert process.stdout.readline() == b"in\n"
        tenancy.change_role(world.tenant, bob, role="viewer", **acts)
        accounts.revoke_token(carol, ApiToken.objects.get(user=carol).pk, now=clock.now())
        for process in (of_bob, of_carol):
            assert process.wait(5) == 255
            assert b"You may no longer connect to this pod" in process.stderr.read()
        assert of_alice.poll() is None
        services.command(pod.job, LifecycleAction.ABORT_JOB, user=world.alice, now=clock.now())
        world.reconcile_until(lambda: Pod.objects.get(pk=pod.pk).is_final)
        for process in (of_alice, forwarding):
            assert process.wait(5) != 0
        assert b"The pod has ended." in forwarding.stderr.read()
    limit = time.monotonic() + PATIENCE_SECONDS
    while LoggedEvent.objects.filter(kind="SshEnded").count() < 4:
        assert time.monotonic() < limit
        time.sleep(0.05)
    events = LoggedEvent.objects.filter(kind__startswith="Ssh").order_by("pk")
    sentences = [sentence(event, "job talk").text for event in events]
    assert sentences.count("alice connected to pod main-0 of job talk by SSH.") == 2
    assert (
        "The SSH connection of bob to pod main-0 of job talk ended, as they lost the permission or the token."
        in sentences
    )
    reasons = [event.payload["reason"] for event in events if event.kind == "SshEnded"]
    assert reasons[:2] == ["rights", "rights"]
    assert "pod" in reasons[2:]  # or the client went first, because its command ended


@only_local
def test_refusals_are_one_sentence(world: World, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pod, viewer = run_pod(world), member(world, "vera", "viewer")
    run_pod(world, name="twins", replicas=2)
    stranger = accounts.create_user(username="mallory", password=None, actor=PLATFORM, now=clock.now())
    own = alice(url, world, tmp_path)

    def refusal(machine: Machine, host: str = "talk.hekla") -> str:
        ended = machine.hekla("ssh-proxy", host, stdin=subprocess.DEVNULL)
        assert ended.returncode == 1, ended
        assert ended.stdout == b""
        return ended.stderr.decode().strip()

    assert refusal(Machine(url, tmp_path / "mallory", stranger)) == "Error: Unknown job “talk”."
    assert refusal(own, "nothing.hekla") == "Error: Unknown job “nothing”."
    assert "“twins” stands for several pods. Name one of: twins.main-0.hekla, twins.main-1.hekla" in refusal(
        own, "twins.hekla"
    )
    assert "no such running pod. Name one of: talk.main-0.hekla" in refusal(own, "talk.main-7.hekla")
    assert own.ssh("twins.main-1.hekla", "true").returncode == 0
    assert "Only the owner of the job" in refusal(Machine(url, tmp_path / "vera", viewer))
    reader = Machine(url, tmp_path / "reader", world.alice, {Scope.READ})
    assert "lacks the scope “jobs”" in refusal(reader)
    own.token = "hk_wrong"
    assert "Unknown, expired or revoked token" in refusal(own)
    assert b"Unknown, expired or revoked token" in own.ssh("talk.hekla", "true").stderr
    late = Machine(url, tmp_path / "late", world.alice)
    ApiToken.objects.filter(user=world.alice).update(expires_at=clock.now())
    assert "Unknown, expired or revoked token" in refusal(late)
    with httpx2.Client() as browser:  # a session or another origin is of no use here
        head = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13"}
        head |= {"Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA==", "Origin": url}
        assert browser.get(f"{url}/ws/ssh/talk/", headers=head).status_code == 403
    assert not LoggedEvent.objects.filter(kind="SshOpened", actor_id=stranger.pk).exists()
    assert pod.pk


@pytest.mark.kubernetes
@pytest.mark.parametrize("world", ["kubernetes"], indirect=True)
def test_kubernetes_runs_commands_copies_files_and_forwards_ports(
    world: World, url: str, tmp_path: Path, small_cluster: ControlPlane, granted_namespace: str
) -> None:
    """Through the API server, without further rights than those for terminals."""
    grant_in_namespace(small_cluster, "rights-terminals.yaml", granted_namespace)
    run_pod(world)
    own, data = alice(url, world, tmp_path), os.urandom(MIB)
    ended = own.ssh("talk.hekla", "echo out; echo err >&2")
    assert (ended.stdout, ended.stderr, ended.returncode) == (b"out\n", b"err\n", 0)
    (tmp_path / "source").write_bytes(data)
    place = tmp_path / "target"
    copied = own.run("scp", "-F", str(own.config), str(tmp_path / "source"), f"talk.hekla:{place}")
    assert copied.returncode == 0, copied
    assert digest(place.read_bytes()) == digest(data)
    with answering_server() as port:
        assert own.ssh("-W", f"localhost:{port}", "talk.hekla", input=b"hello").stdout == b"HELLO"
