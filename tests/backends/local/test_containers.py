"""Pods in containers, by a real Podman with runc: what differs from processes, and what outlives what."""

import asyncio
import json
import os
import signal
import socket
from pathlib import Path

import pytest
from tests.backends.local.test_isolation import of_tenant, output, secrets_of
from tests.backends.local.test_processes import eventually, folder_of

from hekla.backends.base import BackendError, EnvironmentSpec, PodKey, StartRefused
from hekla.backends.local.containers import runtime
from hekla.backends.local.containers.attendant import Progress
from hekla.backends.local.containers.order import tagged
from hekla.backends.local.containers.runtime import EngineInfo, Runtime
from hekla.backends.local.pod_folder import PodFolder
from hekla.domain.cards import HeldCard
from hekla.domain.phases import PodPhase
from hekla.domain.resources import Resources
from hekla.domain.volumes import VolumeMount, VolumeSpec


def attendant_of(folder: PodFolder) -> int:
    """The process id of the attendant, the only child of the shim; 0 while there is none."""
    shim = folder.holder()
    children = Path(f"/proc/{shim}/task/{shim}/children")
    return int((children.read_text().split() or [0])[0]) if children.exists() else 0


def running(
    cluster, script: str = "trap 'echo bye; exit 5' TERM; echo here; while :; do sleep 0.1; done", **fields
) -> PodKey:
    """A running pod that says “here” at its start, and “bye” when it is stopped."""
    key = cluster.started(cluster.order(script=script, grace_seconds=10, **fields))
    cluster.until(key, PodPhase.RUNNING)
    assert eventually(lambda: "here" in cluster.log(key))
    return key


# What a pod is, sees and may


def test_pod_reads_no_secret(containers):
    paths = secrets_of(containers.home).values()
    lines = output(containers, "".join(f"cat {path}\n" for path in paths)).splitlines()
    assert lines == [f"cat: can't open '{path}': No such file or directory" for path in paths]


def test_pod_has_no_privileges(containers):
    script = "grep -E 'CapEff|CapBnd|NoNewPrivs|Seccomp:' /proc/self/status; mount -t tmpfs x /mnt"
    text = output(containers, f"{script}; ls /proc | grep -c '^[0-9]'")
    for line in ("CapEff:\t0000000000000000", "CapBnd:\t0000000000000000", "NoNewPrivs:\t1", "Seccomp:\t2"):
        assert line in text
    assert "mount: " in text
    assert int(text.split()[-1]) <= 6


def test_each_tenant_has_a_user_of_its_own(containers):
    """The image's own user is 1000."""
    keys = [containers.started(of_tenant(containers, tenant, script="id -u; touch new")) for tenant in ("a", "b")]
    users = [int(containers.ended(key) and containers.log(key)) for key in keys]
    assert len({0, 1000, *users}) == 4
    assert [os.stat(Path(folder_of(containers, key).work, "new")).st_uid for key in keys] == users


def test_image_runs_its_own_command_in_its_own_folder(containers):
    """The image's command is a shell, which ends at once without input; arguments replace it."""
    assert containers.ended(containers.started(containers.order(command=()))).phase == PodPhase.SUCCEEDED
    key = containers.started(containers.order(1, command=(), args=("sh", "-c", "pwd; exit 3")))
    assert (containers.ended(key).exit_code, containers.log(key).split()) == (3, ["/"])


def test_pod_has_the_environment_of_its_image_and_its_own(containers):
    script = "echo $FLAVOUR $OWN $HOME $HEKLA_POD_ADDRESS; pwd; cat given; ls -a /"
    order = containers.order(script=script, env={"OWN": "mine"}, files={"given": "text\n"})
    containers.ended(containers.started(order))
    lines = containers.log(order.key).splitlines()
    assert lines[:3] == [f"box mine /work {order.address}", "/work", "text"]
    assert not {"home", "opt", "root"} & set(lines)


def test_names_of_the_other_pods_resolve_and_are_reached(containers):
    peer = containers.order(1, script="echo hello > file; exec httpd -f -p $HEKLA_POD_ADDRESS:8765")
    containers.until(containers.started(peer), PodPhase.RUNNING)
    script = "for i in 1 2 3 4 5 6 7 8 9; do wget -q -O - http://worker-1:8765/file && exit; sleep 0.2; done"
    assert output(containers, script, index=2, hosts={"worker-1": peer.address}) == "hello\n"


def test_volumes_are_mounted_anywhere(containers):
    claim = VolumeSpec(name="v", volume_claim={"storage": "1Gi"})
    mounts = [VolumeMount(name="v", mount_path=path) for path in ("/data", "/work/out")]
    read_only = [VolumeMount(name="v", mount_path="/data", read_only=True)]
    assert output(containers, "echo 1 > /data/x; cat out/x", volumes=[claim], volume_mounts=mounts) == "1\n"
    text = output(containers, "cat /data/x; touch /data/y", index=1, volumes=[claim], volume_mounts=read_only)
    assert text.startswith("1\ntouch: ")
    assert "Read-only file system" in text


@pytest.mark.parametrize("path", ["/data,source=/etc", '/da"ta', "/da\\ta"])
def test_mount_path_gives_the_engine_no_other_option(containers, path):
    """Podman reads mounts as text with commas: another folder of the machine, or no protection from writes."""
    mounts = [VolumeMount(name="v", mount_path=path)]
    with pytest.raises(StartRefused, match="special character"):
        containers.start(containers.order(volumes=[VolumeSpec(name="v", empty_dir={})], volume_mounts=mounts))


def test_environment_of_processes_is_refused_with_a_reason(containers):
    with pytest.raises(StartRefused, match="Name an image instead"):
        containers.start(containers.order(environment=EnvironmentSpec("torch", ("torch",))))


def test_limits_are_enforced(containers):
    resources = Resources.parse({"cpu": "500m", "memory": "32Mi"})
    script = "cat /sys/fs/cgroup/cpu/cpu.cfs_quota_us /sys/fs/cgroup/cpu.max 2>/dev/null; ulimit -n; ulimit -u"
    key = containers.started(containers.order(script=f"{script}; tail /dev/zero", resources=resources))
    pod = containers.ended(key)
    assert (pod.phase, pod.reason, pod.exit_code) == (PodPhase.FAILED, "OOMKilled", 137)
    lines = containers.log(key).split()
    assert lines[0] == "50000"
    assert all(0 < int(limit) <= 65_536 for limit in lines[-2:])


GPU = Resources.parse({"nvidia.com/gpu": "1"})


def test_gpus_are_requested_by_the_container_device_interface(containers, monkeypatch):
    """The order only: there is no GPU, and no engine that would take it."""
    engine = EngineInfo("Docker", "25.0.1", frozenset())
    monkeypatch.setattr(Runtime, "info", lambda _self: engine)
    order = containers.order(resources=GPU)
    containers.start(order)
    body = folder_of(containers, order.key).order()["container"]["body"]
    assert body["HostConfig"]["DeviceRequests"] == [{"Driver": "cdi", "DeviceIDs": ["nvidia.com/gpu=all"]}]


def test_container_gets_only_the_devices_of_its_pod(containers, monkeypatch):
    monkeypatch.setattr(Runtime, "info", lambda _self: EngineInfo("Podman", "5.4.0", frozenset()))
    cards = [HeldCard("nvidia.com/gpu", 3, "GPU-d"), HeldCard("amd.com/gpu", 2, "GPU-x")]
    order = containers.order(cards=cards)
    containers.start(order)
    body = folder_of(containers, order.key).order()["container"]["body"]
    devices = ["nvidia.com/gpu=3", "amd.com/gpu=2"]
    assert body["HostConfig"]["DeviceRequests"] == [{"Driver": "cdi", "DeviceIDs": devices}]
    found = {"CUDA_VISIBLE_DEVICES=GPU-d", "NVIDIA_VISIBLE_DEVICES=GPU-d", "HIP_VISIBLE_DEVICES=0"}
    assert found <= set(body["Env"])


def test_container_without_cards_sees_none(make_cluster):
    cluster = make_cluster("containers", config={"cards": [{"count": 2}]})
    key = cluster.started(cluster.order(script='echo "[$CUDA_VISIBLE_DEVICES]"'))
    cluster.ended(key)
    assert cluster.log(key) == "[]\n"


def test_engine_without_gpus_is_named(containers):
    """It would ignore them without an error."""
    with pytest.raises(StartRefused, match=r"Podman 4\.3\.1 gives containers no GPUs"):
        containers.start(containers.order(resources=GPU))


@pytest.mark.parametrize(
    ("name", "version", "takes"),
    [
        ("Podman", "4.9.4", False),
        ("Podman", "5.3.2", False),
        ("Podman", "5.10.0-dev", True),
        ("Docker", "25.0.1", True),
    ],
)
def test_engines_that_take_devices(name, version, takes):
    assert EngineInfo(name, version, frozenset()).takes_devices is takes


def test_script_for_secrets_would_notice_them(make_cluster, tmp_path):
    """The positive control: the data folder is shared with pods."""
    home = tmp_path / "containers-0"
    cluster = make_cluster("containers", config={"shared_folders": [str(home)]})
    paths = secrets_of(home)
    home.chmod(0o755)
    assert output(cluster, f"cat {paths['key']}; cat {paths['token']}") == "SECRETSECRET"


# Ends


@pytest.mark.parametrize(
    ("command", "reason", "exit_code"),
    [
        (("no-such-command",), "CommandNotFound", 127),
        (("/etc/passwd",), "CommandNotExecutable", 126),
        (("sh", "-c", "kill -SEGV $$"), "Error", 139),
    ],
)
def test_failure_has_a_reason(containers, command, reason, exit_code):
    pod = containers.ended(containers.started(containers.order(command=command)))
    assert (pod.phase, pod.reason, pod.exit_code) == (PodPhase.FAILED, reason, exit_code)
    assert pod.message


def test_stopped_pod_has_its_grace_period_and_leaves_no_container(containers, podman):
    key = running(containers)
    containers.stop(key, reason="Enough")
    pod = containers.ended(key)
    assert (pod.reason, pod.exit_code) == ("Stopped", 5)
    assert containers.log(key) == "here\nbye\n"
    assert podman.containers() == []


def test_deaf_pod_is_killed_after_its_grace_period(containers, podman):
    key = containers.started(
        containers.order(script="trap '' TERM; echo here; while :; do sleep 0.1; done", grace_seconds=0.2)
    )
    containers.until(key, PodPhase.RUNNING)
    containers.stop(key, reason="Enough")
    assert containers.ended(key).reason == "Stopped"
    assert podman.containers() == []


# Images


def test_unknown_image_is_a_failure_with_the_words_of_the_engine(containers, registry):
    image = f"{registry.host}/no-such:1"
    key = containers.started(containers.order(image=image))
    pod = containers.ended(key)
    assert (pod.phase, pod.reason) == (PodPhase.FAILED, "ImagePullFailed")
    assert pod.message.startswith(f"The image {image} cannot be pulled: ")
    assert f"[hekla] Pulling the image {image}\n" in containers.log(key)


def test_image_is_pulled_with_the_credentials_of_the_data_folder(containers, registry):
    """Wrong ones, then the right ones: they are read at each pull."""
    image = registry.push("box", "1")
    file = containers.home / "registries.json"
    for index, (password, phase) in enumerate(
        {"wrong": PodPhase.FAILED, registry.password: PodPhase.SUCCEEDED}.items()
    ):
        file.write_text(json.dumps({"auths": {registry.host: {"auth": registry.auth(password)}}}))
        pod = containers.ended(containers.started(containers.order(index, image=image, script="echo pulled")))
        assert pod.phase == phase, pod.message
    assert "unauthorized" in containers.log(containers.order(0).key)
    assert containers.log(pod.key).endswith("pulled\n")


def test_unreadable_credentials_are_named(containers):
    (containers.home / "registries.json").write_text("{")
    pod = containers.ended(containers.started(containers.order(image="127.0.0.1:1/box:1")))
    assert "registries.json in the console's data folder cannot be read" in pod.message


def test_pod_prepares_while_its_image_is_pulled_and_can_be_stopped(containers):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        image = f"127.0.0.1:{silent.getsockname()[1]}/box:1"
        key = containers.started(containers.order(image=image))
        assert eventually(lambda: containers.observation(key).message == f"Pulling the image {image}")
        assert containers.observation(key).phase == PodPhase.PREPARING
        containers.stop(key, reason="Enough")
        assert containers.ended(key).reason == "Stopped"


@pytest.mark.parametrize(
    ("image", "name"),
    [("python", "python:latest"), ("host:5000/a", "host:5000/a:latest"), ("a:1", "a:1"), ("a@sha256:0", "a@sha256:0")],
)
def test_image_without_a_tag_is_the_latest(image, name):
    assert tagged(image) == name


def test_progress_is_the_sum_of_the_parts():
    progress = Progress()
    for name, current, total in (("a", 1, 4), ("b", 0, 6), ("a", 4, 4)):
        progress.add({"id": name, "progressDetail": {"current": current * 2**20, "total": total * 2**20}})
    progress.add({"status": "Waiting", "progressDetail": {}})
    assert progress.text == "4 of 10 MiB"


# What outlives what


@pytest.mark.parametrize("victim", ["attendant", "shim"])
def test_container_outlives_its_attendant(containers, podman, victim):
    """The next one follows the same container to its end."""
    key = running(containers)
    folder, before = folder_of(containers, key), podman.containers()
    attendant = attendant_of(folder)
    os.kill(attendant if victim == "attendant" else folder.holder(), signal.SIGKILL)
    assert eventually(lambda: containers.observation(key) and attendant_of(folder) not in {0, attendant})
    assert containers.observation(key).phase == PodPhase.RUNNING
    assert podman.containers() == before
    containers.stop(key, reason="Enough")
    assert containers.ended(key).exit_code == 5
    assert containers.log(key).count("here") == 1
    assert podman.containers() == []


def test_container_outlives_a_restart_of_its_engine(containers, podman):
    key = running(containers)
    podman.kill()
    assert eventually(lambda: "does not answer" in containers.observation(key).message)
    assert not containers.backend.nodes()[0].ready
    podman.start()
    assert eventually(lambda: containers.observation(key).message == "")
    containers.stop(key, reason="Enough")
    assert containers.ended(key).exit_code == 5


def test_removed_container_is_a_lost_pod(containers, podman):
    key = running(containers, "echo here; exec sleep 1000")
    (name,) = podman.containers()
    podman.engine.request("DELETE", f"/containers/{name}?force=true")
    pod = containers.ended(key)
    assert pod.phase in {PodPhase.LOST, PodPhase.FAILED}


def test_container_without_a_folder_is_removed_with_its_job(containers, podman):
    """The data folder was deleted while the console was down."""
    key = running(containers, "echo here; exec sleep 1000", job="gone")
    folder = folder_of(containers, key)
    for pid in (folder.holder(), attendant_of(folder)):
        os.kill(pid, signal.SIGKILL)
    Path(folder.path).rename(containers.home / "elsewhere")
    assert containers.backend.inventory().alive == {key}
    containers.backend.remove("gone")
    assert podman.containers() == []
    assert containers.backend.inventory().alive == frozenset()


def test_node_says_that_pods_are_containers(containers):
    node = containers.backend.nodes()[0]
    assert node.message.startswith("Pods run in containers. The pods of each tenant have a user of their own.")
    assert node.message.endswith("(Podman 4.3.1)")


def test_engine_that_is_not_there_makes_the_node_not_ready(make_cluster, tmp_path):
    cluster = make_cluster("local", config={"runtime": "containers", "socket": str(tmp_path / "nothing.sock")})
    node = cluster.backend.nodes()[0]
    assert (node.ready, node.message.startswith("No container engine answers at ")) == (False, True)


def test_engine_without_root_is_refused_by_a_console_of_root(make_cluster, monkeypatch):
    """It has no user ids for tenants."""
    engine = EngineInfo("Podman", "5.4.0", frozenset(), is_rootless=True)
    monkeypatch.setattr(runtime, "ask", lambda _socket: engine)
    cluster = make_cluster("containers")
    with pytest.raises(BackendError, match="no users for tenants"):
        cluster.start(cluster.order())
    for user, is_ready in ((0, False), (1000, True)):
        monkeypatch.setattr(os, "geteuid", lambda user=user: user)
        node = cluster.backend.nodes()[0]
        assert (node.ready, "Run Hekla as the user of the engine" in node.message) == (is_ready, not is_ready)


# Commands


def test_command_runs_in_the_container(containers):
    key = running(containers, "echo here; exec sleep 1000", env={"OWN": "mine"})
    found = asyncio.run(_run(containers, key, ["sh", "-c", "cat; echo $OWN; id -u; echo bad >&2; exit 7"], b"typed\n"))
    user = str(os.stat(folder_of(containers, key).work).st_uid)
    assert found == (f"typed\nmine\n{user}\n", "bad\n", 7)


async def _run(cluster, key: PodKey, command: list[str], typed: bytes) -> tuple[str, str, int | None]:
    texts: dict[bool, str] = {False: "", True: ""}
    async with cluster.backend.exec.run(key, command) as running_command:
        await running_command.send(typed)
        await running_command.end_input()
        while (piece := await running_command.receive()) is not None:
            texts[piece.is_error] += piece.data.decode()
    return texts[False], texts[True], running_command.exit_code


def test_terminal_has_a_size(containers):
    key = running(containers, "echo here; exec sleep 1000")
    assert "40 100" in asyncio.run(_type(containers, key, b"stty size; exit\n"))


async def _type(cluster, key: PodKey, typed: bytes) -> str:
    text = ""
    async with cluster.backend.exec.run(key, ["sh"], in_terminal=True) as terminal:
        await terminal.resize(100, 40)
        await terminal.send(typed)
        while (piece := await terminal.receive()) is not None:
            text += piece.data.decode()
    return text
