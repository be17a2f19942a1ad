"""What a pod of this machine can reach: its own folder and the system's programs, and nothing of anybody else."""

import os
import socket
import stat
from dataclasses import replace
from pathlib import Path

import pytest
from tests.backends.local.test_processes import folder_of

from hekla.backends.base import PodKey, StartRefused
from hekla.backends.local import isolation, pod_sandbox
from hekla.backends.local.sandbox.order import LAYERS, NAMESPACES
from hekla.domain.phases import PodPhase
from hekla.domain.volumes import VolumeMount, VolumeSpec

ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="this machine does not run the tests as root")


@pytest.fixture
def without_layers(monkeypatch):
    """A machine that offers no layer at all."""
    monkeypatch.setattr(isolation, "failures", lambda: dict.fromkeys(LAYERS, "not permitted"))


def output(cluster, script: str, **fields) -> str:
    """What a pod with this script prints, whatever its exit code."""
    key = cluster.started(cluster.order(script=script, **fields))
    cluster.ended(key)
    return cluster.log(key)


def of_tenant(cluster, tenant: str, **fields):
    """An order of this tenant."""
    order = cluster.order(job=f"job-{tenant}", **fields)
    return replace(order, key=PodKey(order.key.job, "worker", order.key.index, 0, tenant=tenant))


def secrets_of(home: Path) -> dict[str, Path]:
    """Files that a pod must not read: those of the console's data folder, of its checkout, and of its process."""
    key, token = home / "secret-key", home / "admin-token"
    for path in (key, token):
        path.write_text("SECRET")
    checkout = Path(__file__).parents[3] / "manage.py"
    return {"key": key, "token": token, "checkout": checkout, "process": Path(f"/proc/{os.getpid()}/environ")}


def test_pod_reads_no_secret(local):
    for path in secrets_of(local.home).values():
        assert "No such file" in output(local, f"cat {path}", job=f"job-{path.name}"), path


def test_pod_without_a_sandbox_reads_them(local, without_layers):
    """The check above would notice: the same script, on a machine without any layer."""
    for path in secrets_of(local.home).values():
        assert "No such file" not in output(local, f"cat {path}", job=f"job-{path.name}"), path


def test_pod_sees_only_itself(local):
    names = output(local, "ls /proc | grep -c '^[0-9]'; ls -a ..; kill -9 1; cat /proc/1/environ | wc -c")
    assert names.splitlines()[0] in {"3", "4", "5"}  # the shell starts the second of the pipe while the first looks
    assert "order.json" not in names
    assert "log" not in names.split()
    assert names.splitlines()[-1] == "0", "the first process has neither ended nor become readable"


def test_pod_writes_only_to_its_own_folders(local):
    places = '/ /usr /etc /root "$HOME" "$TMPDIR" /tmp /dev/shm'
    script = f"for place in {places}; do touch $place/x 2>/dev/null && echo $place; done"
    key = local.started(local.order(script=script))
    local.ended(key)
    folder = folder_of(local, key)
    assert local.log(key).split() == ["/home/pod", folder.tmp, "/tmp", "/dev/shm"]
    assert Path(folder.work, "x").exists()


def test_pod_gets_no_privileges(local):
    script = "grep -E 'CapEff|NoNewPrivs|Seccomp:' /proc/self/status; unshare -U true; mount -t tmpfs x /mnt"
    text = output(local, script)
    assert "CapEff:\t0000000000000000" in text
    assert "NoNewPrivs:\t1" in text
    assert "Seccomp:\t2" in text
    assert "unshare failed: Operation not permitted" in text
    assert "mount" in text.splitlines()[-1]


def test_pod_uses_processes_threads_and_pipes(local):
    """What the filter must not forbid."""
    lines = [
        "import subprocess, threading",
        "run = lambda: print(subprocess.run('id | wc -l', shell=True))",
        "threading.Thread(target=run).start()",
    ]
    key = local.started(local.order(command=("python", "-c", "\n".join(lines))))
    assert local.ended(key).phase == PodPhase.SUCCEEDED, local.log(key)


def test_pod_reaches_no_abstract_socket_of_others(local):
    """They are in the network namespace, which pods share. A socket by address is reachable."""
    with socket.socket(socket.AF_UNIX) as hidden, socket.create_server(("127.0.0.1", 0)) as public:
        hidden.bind("\0hekla-test-isolation")
        hidden.listen()
        port = public.getsockname()[1]
        lines = [
            "import socket",
            f"socket.create_connection(('127.0.0.1', {port})); print('public')",
            "socket.socket(socket.AF_UNIX).connect('\\0hekla-test-isolation'); print('hid' + 'den')",
        ]
        key = local.started(local.order(command=("python", "-c", "\n".join(lines))))
        local.ended(key)
    assert "public" in local.log(key)
    assert "hidden" not in local.log(key)
    assert "PermissionError" in local.log(key)


@ROOT
def test_each_tenant_has_a_user_of_its_own(local):
    keys = [local.started(of_tenant(local, tenant, script="id -u; whoami")) for tenant in ("a", "b")]
    lines = [local.ended(key) and local.log(key).split() for key in keys]
    assert [line[1] for line in lines] == ["pod", "pod"]
    assert len({line[0] for line in lines}) == 2
    for key, line in zip(keys, lines, strict=True):
        assert os.stat(folder_of(local, key).work).st_uid == int(line[0])


@ROOT
def test_files_of_the_console_stay_its_own(local):
    key = local.started(local.order(script="echo said"))
    local.ended(key)
    folder = folder_of(local, key)
    for path in (folder.log, f"{folder.path}/order.json", f"{folder.path}/status.json"):
        found = os.stat(path)
        assert (found.st_uid, stat.S_IMODE(found.st_mode) & 0o077) == (0, 0), path


def test_pod_cannot_empty_its_log(local):
    assert (
        output(local, "echo first; echo second > /dev/stderr; echo third > /proc/self/fd/1") == "first\nsecond\nthird\n"
    )


def test_names_of_the_other_pods_resolve(local):
    script = "import socket; print(socket.gethostbyname('ps-0'))"
    key = local.started(local.order(command=("python", "-c", script), hosts={"ps-0": "127.9.9.9"}))
    local.ended(key)
    assert local.log(key) == "127.9.9.9\n"


def test_shared_folder_is_readable(make_cluster, tmp_path):
    data = tmp_path / "data"
    data.mkdir(mode=0o755)
    (data / "set").write_text("images\n")
    cluster = make_cluster("local", config={"shared_folders": [str(data)]})
    assert output(cluster, f"cat {data}/set; touch {data}/new && echo written").startswith("images\ntouch: ")


def test_writable_folder_keeps_what_pods_of_all_tenants_write(make_cluster, tmp_path):
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    scratch.chmod(0o1777)
    cluster = make_cluster("local", config={"writable_folders": [str(scratch)]})
    for tenant in ("a", "b"):
        key = cluster.started(of_tenant(cluster, tenant, script=f"echo {tenant} > {scratch}/{tenant}; cat {scratch}/*"))
        cluster.ended(key)
    assert cluster.log(key) == "a\nb\n"
    assert sorted(path.name for path in scratch.iterdir()) == ["a", "b"]


def test_second_tenant_is_refused_without_isolation(local, without_layers):
    local.ended(local.started(of_tenant(local, "a")))
    with pytest.raises(StartRefused, match="serves only the tenant that used it first"):
        local.start(of_tenant(local, "b"))
    local.ended(local.started(of_tenant(local, "a", index=1)))


def test_admin_accepts_the_risk(make_cluster, without_layers):
    cluster = make_cluster("local", config={"accept_weak_isolation": True})
    for tenant in ("a", "b"):
        assert cluster.ended(cluster.started(of_tenant(cluster, tenant))).phase == PodPhase.SUCCEEDED


def test_node_says_how_pods_are_kept_apart(local, monkeypatch):
    assert local.backend.nodes()[0].message.startswith("Pods are kept apart by namespaces, seccomp and Landlock.")
    monkeypatch.setattr(isolation, "failures", lambda: {NAMESPACES: "unshare: Operation not permitted"})
    message = local.backend.nodes()[0].message
    assert message.startswith("Pods are not kept apart from one another and from the console. The cluster serves one")
    assert "no namespaces for pods. unshare: Operation not permitted." in message


def test_layer_that_fails_at_the_start_fails_the_pod(local, monkeypatch):
    """A pod never runs with less than its order says."""
    order = pod_sandbox.sandbox_of
    monkeypatch.setattr(pod_sandbox, "sandbox_of", lambda *a, **k: {**order(*a, **k), "root": "/nowhere"})
    pod = local.ended(local.started(local.order(script="echo ran")))
    assert (pod.phase, pod.reason) == (PodPhase.FAILED, "StartRefused")
    assert "ran" not in local.log(pod.key)


def test_volume_of_a_job_leads_nowhere_else(local, tmp_path):
    """A pod puts a link into its job's volume. The folder of the next pod's mount is not created behind it."""
    outside = tmp_path / "outside"
    outside.mkdir()
    fields = {"job": "job-links", "volumes": [VolumeSpec(name="v", volume_claim={"storage": "1Gi"})]}
    mount = VolumeMount(name="v", mount_path="/work/data")
    key = local.started(local.order(script=f"ln -s {outside} data/link", volume_mounts=[mount], **fields))
    assert local.ended(key).phase == PodPhase.SUCCEEDED, local.log(key)
    through = VolumeMount(name="v", mount_path="/work/data", sub_path="link/deeper")
    with pytest.raises(StartRefused, match="“v/link” is there and is no folder"):
        local.start(local.order(index=1, volume_mounts=[through], **fields))
    assert list(outside.iterdir()) == []


def test_pods_of_a_job_share_a_folder_for_sockets(local):
    listen = "import socket; s = socket.socket(1); s.bind('/run/job/s'); s.listen(); s.accept()[0].send(b'hello')"
    connect = "import socket; s = socket.socket(1); s.connect('/run/job/s'); print(s.recv(9))"
    local.started(local.order(command=("python", "-c", listen), job="job-sockets"))
    script = f'until test -S /run/job/s; do sleep 0.05; done; python -c "{connect}"'
    assert output(local, script, job="job-sockets", index=1) == "b'hello'\n"
    assert output(local, "ls /run/job", job="job-other") == ""
