"""`hekla doctor`: what a machine lacks for Hekla, in plain sentences and as JSON."""

import json
import os
import socket
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from tests.podman.server import Podman

from hekla.backends.local import cgroups, gpus, isolation
from hekla.backends.local.containers import runtime
from hekla.backends.local.containers.engine import Engine
from hekla.backends.local.sandbox.order import LANDLOCK, LAYERS, NAMESPACES
from hekla.domain.cards import NVIDIA, NodeCard
from hekla.launcher.doctor import machine, services
from hekla.launcher.doctor.command import doctor
from hekla.launcher.up import command as up
from hekla.launcher.up.home import Home
from hekla.lib.checkout import CHECKOUT

NOT_APART = "Pods are not kept apart from one another and from the console."


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """A data folder with a secret key."""
    made = Home(tmp_path / "data")
    made.open()
    made.secret_key()
    return made


@pytest.fixture(autouse=True)
def all_layers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(isolation, "failures", dict)


def check(home: Home, *options: str) -> tuple[int, dict[str, list[tuple[str, str]]]]:
    """The exit code, and levels and texts by subject."""
    result = CliRunner().invoke(doctor, ["--json", "--data", str(home.path), *options])
    document: dict[str, Any] = json.loads(result.stdout)
    assert document["ok"] == (result.exit_code == 0)
    found: dict[str, list[tuple[str, str]]] = {}
    for one in document["findings"]:
        found.setdefault(one["subject"], []).append((one["severity"], one["text"]))
    return result.exit_code, found


def test_machine_without_a_problem(home: Home) -> None:
    code, found = check(home)
    assert code == 0, found
    assert {
        "isolation",
        "limits",
        "runtime",
        "data",
        "space",
        "secret-key",
        "postgresql",
        "valkey",
        "clock",
    } <= found.keys()
    assert found["isolation"][0][1].startswith("Pods are kept apart by namespaces, seccomp and Landlock.")
    assert "answers" in found["postgresql"][0][1]


def test_missing_layers_are_named_as_on_the_page_of_the_cluster(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(isolation, "failures", lambda: dict.fromkeys(LAYERS, "Operation {not} permitted"))
    code, found = check(home)
    ((level, text),) = found["isolation"]
    assert (code, level) == (1, "problem")
    assert text == " ".join(isolation.sentences())
    assert isolation.description(cgroups.NEEDED).startswith(text)
    monkeypatch.setattr(isolation, "failures", lambda: {LANDLOCK: "no such system call"})
    code, found = check(home)
    assert (code, found["isolation"][0][0]) == (0, "warning")


def test_missing_limits_are_a_warning(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cgroups, "create_parents", lambda _name: {})
    code, found = check(home)
    assert (code, found["limits"]) == (
        0, [("warning", "Limits of memory are not enforced. Limits of CPU are not enforced.")],
    )  # fmt: skip


def gpus_of(monkeypatch: pytest.MonkeyPatch, *cards: NodeCard, version: str = "") -> None:
    monkeypatch.setattr(gpus, "detected", lambda *, shares_memory: cards)
    monkeypatch.setattr(gpus, "driver_version", lambda: version)


def test_gpus_and_their_driver_are_named(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    gpus_of(monkeypatch)
    assert check(home)[1]["gpus"] == [("ok", "NVIDIA's driver reports no GPU.")]
    two = [NodeCard(NVIDIA, at, f"GPU-{at}", "NVIDIA H100 80GB HBM3", 81079) for at in range(2)]
    gpus_of(monkeypatch, *two, version="580.159.04")
    text = "NVIDIA's driver 580.159.04 reports these GPUs: 2 × NVIDIA H100 80GB HBM3."
    assert check(home)[1]["gpus"] == [("ok", text)]
    gpus_of(monkeypatch, two[0], replace(two[1], is_healthy=False), version="580.159.04")
    text = text.replace("2 ×", "1 ×") + " Failed GPUs, which pods do not get: 1."
    assert check(home)[1]["gpus"] == [("warning", text)]


def test_missing_library_of_the_driver_is_a_warning(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    gpus_of(monkeypatch, NodeCard(NVIDIA, 0, "GPU-0", "NVIDIA A10"))
    ((level, text),) = check(home)[1]["gpus"]
    assert (level, text.startswith("NVIDIA's driver has these GPUs: 1 × NVIDIA A10. Its library")) == ("warning", True)


def test_sentences_are_in_the_language_of_the_terminal(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(isolation, "failures", lambda: {NAMESPACES: "refused"})
    monkeypatch.setenv("LC_ALL", "zh_CN.UTF-8")
    assert "Pod 之间、Pod 与控制台之间没有隔离。" in check(home)[1]["isolation"][0][1]
    assert NOT_APART in check(home, "--language", "en")[1]["isolation"][0][1]
    result = CliRunner().invoke(doctor, ["--data", str(home.path), "--language", "zh-hans"])
    assert (result.exit_code, "没有隔离" in result.output) == (1, True)


@pytest.mark.parametrize(
    ("place", "mode", "subject"), [("", 0o755, "data"), ("secret-key", 0o644, "secret-key"), ("", 0o700, "")]
)
def test_what_others_can_open_is_a_problem(home: Home, place: str, mode: int, subject: str) -> None:
    (home.path / place).chmod(mode)
    code, found = check(home)
    assert code == bool(subject)
    assert [name for name, results in found.items() if results[0][0] == "problem"] == ([subject] if subject else [])


def test_secret_key_that_is_a_link_is_a_problem(home: Home, tmp_path: Path) -> None:
    (home.path / "secret-key").rename(tmp_path / "key")
    (home.path / "secret-key").symlink_to(tmp_path / "key")
    assert check(home)[1]["secret-key"][0][0] == "problem"


def test_folder_of_another_program_is_a_problem_and_a_new_one_is_not(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir(mode=0o700)
    (tmp_path / "other" / "file").touch()
    assert check(Home(tmp_path / "other"))[0] == 1
    assert check(Home(tmp_path / "new" / "deeper"))[0] == 0
    assert not (tmp_path / "new").exists()


def test_full_disk_and_wrong_clock_are_problems(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "LEAST_FREE_BYTES", 2**60)
    monkeypatch.setattr(machine.time, "time", lambda: 0.0)
    code, found = check(home)
    assert (code, found["space"][0][0], found["clock"][0][0]) == (1, "problem", "problem")


def test_silent_stores_are_problems_and_passwords_are_not_shown(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgresql://hekla:hidden@127.0.0.1:9/hekla")
    monkeypatch.setenv("VALKEY_URL", "redis://:hidden@127.0.0.1:9/0")
    code, found = check(home)
    assert code == 1
    for subject, name in (("postgresql", "PostgreSQL"), ("valkey", "Valkey")):
        ((level, text),) = found[subject]
        assert (level, text.startswith(f"{name} at 127.0.0.1:9 does not answer.")) == ("problem", True)
        assert "hidden" not in text


def test_valkey_without_a_password_is_a_warning(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pods share the network of this machine. Sockets have permissions instead."""
    monkeypatch.setattr(services.redis.Redis, "ping", lambda _self: True)
    for url, severity in (
        ("redis://127.0.0.1:6379/0", "warning"),
        ("redis://:hidden@127.0.0.1:6379/0", "ok"),
        ("unix:///run/valkey.sock?db=0", "ok"),
    ):
        monkeypatch.setenv("VALKEY_URL", url)
        ((found, text),) = check(home)[1]["valkey"]
        assert (found, "hidden" in text) == (severity, False)


def test_embedded_stores_need_no_address(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DATABASE_URL")
    monkeypatch.delenv("VALKEY_URL")
    code, found = check(home)
    assert (code, found["valkey"]) == (0, [("ok", "Hekla starts its own Valkey.")])


def test_silent_cluster_is_a_warning(home: Home) -> None:
    (home.path / "kubeconfigs").mkdir()
    kubeconfig = {
        "apiVersion": "v1", "kind": "Config", "current-context": "far",
        "clusters": [{"name": "far", "cluster": {"server": "https://127.0.0.1:9"}}],
        "users": [{"name": "me", "user": {"token": "hidden"}}],
        "contexts": [{"name": "far", "context": {"cluster": "far", "user": "me"}}],
    }  # fmt: skip
    (home.path / "kubeconfigs" / "lab").write_text(json.dumps(kubeconfig))
    (home.path / "kubeconfigs" / "broken").write_text("[")
    code, found = check(home)
    assert code == 0
    assert [level for level, _text in found["kubernetes"]] == ["warning", "warning"]
    assert found["kubernetes"][1][1].startswith("The cluster of the context lab: far cannot be used.")


@pytest.fixture
def sockets(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The places at which engines can listen."""
    places: list[str] = []
    monkeypatch.setattr(runtime, "usual_sockets", lambda: tuple(places))
    return places


def test_machine_without_a_container_engine_has_no_problem(home: Home, sockets: list[str]) -> None:
    code, found = check(home)
    assert (code, found["runtime"][0][0]) == (0, "ok")
    assert found["runtime"][0][1].startswith("No container engine listens here.")


def test_container_engine_is_described(home: Home, sockets: list[str], podman: Podman) -> None:
    sockets += [podman.socket, podman.socket]
    ((level, text),) = check(home)[1]["runtime"]
    assert level == "ok", text
    for sentence in (
        f"Podman 4.3.1 answers at {podman.socket}.",
        "It runs as root.",
        "Its storage is vfs, and runc runs its containers.",
        "Limits of memory and CPU are enforced.",
        "It gives containers no GPUs. That needs Podman 5.4 or Docker 25.",
    ):
        assert sentence in text


def test_socket_without_an_engine_is_a_warning(home: Home, sockets: list[str], tmp_path: Path) -> None:
    sockets.append(str(tmp_path / "silent.sock"))
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(sockets[0])
        ((level, text),) = check(home)[1]["runtime"]
    assert (level, text.startswith(f"No container engine answers at {sockets[0]}: ")) == ("warning", True)


ROOTLESS = {
    "BuildahVersion": "1", "ServerVersion": "5.4.0", "Rootless": True, "CgroupVersion": "1", "MemoryLimit": True,
    "CpuCfsQuota": True, "SecurityOptions": ["name=apparmor"], "Driver": "overlay", "DefaultRuntime": "crun",
}  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "missing"),
    [
        ({}, {"runs without root", "Limits of memory are not", "seccomp", "no users for tenants"}),
        ({"CgroupVersion": "2"}, {"runs without root", "seccomp", "no users for tenants"}),
        ({"Rootless": False}, {"seccomp"}),
        ({"Rootless": False, "SecurityOptions": ["name=seccomp,profile=default"]}, set()),
    ],
)
def test_what_an_engine_lacks_is_named(
    home: Home,
    sockets: list[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    changes: dict[str, object],
    missing: set[str],
) -> None:
    """Without root on control groups of version 1, Podman says that it has limits and ignores them."""
    sockets.append(str(tmp_path))
    monkeypatch.setattr(Engine, "request", lambda *_arguments, **_options: ROOTLESS | changes)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    ((level, text),) = check(home)[1]["runtime"]
    words = {"runs without root", "Limits of memory are not", "seccomp", "no users for tenants"}
    assert {word for word in words if word in text} == missing
    assert level == ("warning" if missing else "ok")
    assert "crun runs its containers" in text
    assert "GPU" not in text


def test_start_names_missing_layers(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    up._say_missing_layers()
    assert capsys.readouterr().out == ""
    monkeypatch.setattr(isolation, "failures", lambda: {NAMESPACES: "refused"})
    up._say_missing_layers()
    assert NOT_APART in capsys.readouterr().out


def test_both_commands_check(home: Home) -> None:
    environment = {**os.environ, "PYTHONPATH": str(CHECKOUT / "platform")}
    for words in (["-m", "hekla.cli"], [str(CHECKOUT / "manage.py")]):
        done = subprocess.run(
            [sys.executable, *words, "doctor", "--json", "--data", str(home.path)],
            env=environment, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert "findings" in json.loads(done.stdout[done.stdout.index("{") :])
