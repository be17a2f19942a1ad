"""The environment of a pod: variables, files, addresses, and nothing of the console's."""

import asyncio
import dataclasses
import sys

import pytest

from hekla.backends.base import BackendError, PodKey, StartRefused
from hekla.backends.local import addresses
from hekla.domain.phases import PodPhase

LISTEN = """
import os, socket
with socket.create_server((os.environ["HEKLA_POD_ADDRESS"], int(os.environ["PORT"]))) as server:
    print("listening")
    connection, peer = server.accept()
    with connection:
        print(connection.recv(100).decode(), "from", peer[0])
"""
SPEAK = """
import os, socket
mine = os.environ["HEKLA_POD_ADDRESS"]
with socket.create_server((mine, int(os.environ["PORT"]))):
    for line in open(os.environ["HEKLA_HOSTS_FILE"]):
        address, name = line.split()
        if name == "ps-0":
            with socket.create_connection((address, int(os.environ["PORT"])), source_address=(mine, 0)) as ps:
                ps.sendall(b"hello")
"""


def free_port() -> str:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as server:
        return str(server.getsockname()[1])


def output(cluster, **fields) -> str:
    key = cluster.started(cluster.order(**fields))
    cluster.ended(key)
    return cluster.log(key)


def test_two_pods_listen_on_one_port_and_talk(local):
    port = {"PORT": free_port()}
    ps = local.order(0, command=("python", "-c", LISTEN), env=port)
    worker = local.order(1, command=("python", "-c", SPEAK), env=port, hosts={"ps-0": ps.address})
    local.start(ps)
    local.until(ps.key, PodPhase.RUNNING)
    while "listening" not in local.log(ps.key):
        assert not local.observation(ps.key).phase.is_final, local.log(ps.key)
    local.start(worker)
    assert local.ended(worker.key).phase == PodPhase.SUCCEEDED, local.log(worker.key)
    local.ended(ps.key)
    assert local.log(ps.key) == f"listening\nhello from {worker.address}\n"


def test_port_of_a_pod_can_be_reached(local):
    port = free_port()
    key = local.started(local.order(command=("python", "-c", LISTEN), env={"PORT": port}))
    while "listening" not in local.log(key):
        assert not (observed := local.observation(key)) or not observed.phase.is_final, local.log(key)
    assert asyncio.run(greet(local, key, int(port))) == b""
    local.ended(key)
    assert local.log(key).startswith("listening\nhello from 127.")


async def greet(local, key, port):
    """Sends a greeting, and returns the response."""
    async with local.backend.port_forwarding.connect(key, port) as stream:
        await stream.send(b"hello")
        return await stream.receive()


def test_closed_port_of_a_pod_is_an_error(local):
    key = local.started(local.long())
    with pytest.raises(BackendError):
        asyncio.run(greet(local, key, int(free_port())))


def test_pod_has_no_variables_of_the_console(local, monkeypatch):
    monkeypatch.setenv("HEKLA_SECRET_KEY", "very secret")
    monkeypatch.setenv("DATABASE_URL", "postgresql://secret")
    names = {line.partition("=")[0] for line in output(local, script="env", env={"COLOUR": "red"}).splitlines()}
    assert names - {"PWD", "OLDPWD", "SHLVL", "_", "TZ"} == {
        "PATH", "HOME", "TMPDIR", "USER", "LANG", "PYTHONUNBUFFERED", "COLOUR", "HEKLA_POD", "HEKLA_POD_ADDRESS",
        "HEKLA_HOSTS_FILE", "HEKLA_SIM_SECONDS", "HEKLA_SIM_EXIT",
    }  # fmt: skip


def test_shim_has_no_variables_of_the_console(local, monkeypatch):
    monkeypatch.setenv("HEKLA_SECRET_KEY", "very secret")
    assert "very secret" not in output(local, script="tr '\\0' '\\n' </proc/$PPID/environ")


def test_pod_has_the_interpreter_of_the_console_by_default(local):
    assert output(local, command=("python", "-c", "import sys, numpy; print(sys.prefix)")).strip() == sys.prefix


def test_files_are_in_the_working_directory(local):
    files = {"train.py": "print(open('data/a.txt').read())", "data/a.txt": "Grüße\r\n你好"}
    assert output(local, command=("python", "train.py"), files=files) == "Grüße\n你好\n"


@pytest.mark.parametrize("name", ["../up", "a/../../up", "/etc/x", "", ".", "a\0b"])
def test_files_outside_of_the_working_directory_are_refused(local, name):
    order = local.order(files={name: "x"})
    with pytest.raises(StartRefused):
        local.start(order)
    assert local.observation(order.key) is None


@pytest.mark.parametrize(
    "fields",
    [
        {"command": ()},
        {"command": ("",)},
        {"command": ("a\0b",)},
        {"env": {"A=B": "c"}},
        {"env": {"": "c"}},
        {"working_dir": "../.."},
        {"files": {f"f{n}": "" for n in range(1001)}},
        {"files": {"f": "x" * (16 * 2**20 + 1)}},
        {"key": PodKey("../job", "worker", 0, 0)},
        {"key": PodKey("job", "a/b", 0, 0)},
    ],
    ids=lambda fields: next(iter(fields)),
)
def test_invalid_order_is_refused_at_once(local, fields):
    with pytest.raises(StartRefused):
        local.start(dataclasses.replace(local.order(), **fields))
    assert local.backend.observe(None).pods == []


def test_working_directory_may_be_nested(local):
    assert output(local, script="pwd; cd; pwd", working_dir="a/b") == "/home/pod/a/b\n/home/pod\n"


def test_missing_working_directory_is_reported(local):
    pod = local.ended(local.started(local.order(working_dir="/no/such/folder")))
    assert (pod.phase, pod.reason) == (PodPhase.FAILED, "WorkingDirMissing")
    assert "/no/such/folder" in pod.message


def test_both_streams_are_in_one_log_in_order(local):
    assert output(local, script="echo a; echo b >&2; echo c") == "a\nb\nc\n"


def test_standard_input_is_empty(local):
    assert output(local, script="cat; echo end") == "end\n"


@pytest.mark.parametrize("slot", [0, 253, 254, 254 * 256, addresses.SLOTS - 1])
def test_addresses_are_valid_hosts(slot):
    first, second, _, last = map(int, addresses.address_of(slot).split("."))
    assert first == 127
    assert 64 <= second < 128
    assert 1 <= last <= 254


def test_image_without_effect_is_named_in_the_log(local):
    key = local.started(local.order(script="echo ran", image="python:3.11-slim"))
    local.ended(key)
    note = "[hekla] Pods of this cluster are processes, so the image python:3.11-slim is not used.\n"
    assert local.log(key) == f"{note}ran\n"
