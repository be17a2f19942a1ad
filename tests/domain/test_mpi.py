"""The `mpi` plugin: settings of mpirun in the master, and the agent that starts ranks in workers instead of ssh."""

import os
import random
import subprocess
import sys
import time

import pytest
from tests.domain.test_frameworks import job, pod_settings

from hekla.domain import formats
from hekla.domain.errors import Invalid
from hekla.domain.frameworks import mpi_agent, settings_for
from hekla.domain.jobspec import JobSpec

AGENT = "etc/mpi/mpi_agent.py"


def test_hosts_are_in_the_settings_of_each_mpirun():
    settings = pod_settings(job({"mpi": ["--slots=4"]}, master=1, worker=2), "master", 0)
    assert settings.env["MPI_HOST"] == "127.0.0.3,127.0.0.4"
    assert settings.files[settings.env["HYDRA_HOST_FILE"]] == "127.0.0.3:4\n127.0.0.4:4\n"
    for variable in ("OMPI_MCA_orte_default_hostfile", "PRTE_MCA_prte_default_hostfile"):
        assert settings.files[settings.env[variable]] == "127.0.0.3 slots=4\n127.0.0.4 slots=4\n"
    launch = f"{settings.env['HYDRA_LAUNCHER_EXEC']} {settings.env['HYDRA_LAUNCHER_EXTRA_ARGS']}"
    assert {launch, settings.env["OMPI_MCA_plm_rsh_agent"], settings.env["PRTE_MCA_plm_ssh_agent"]} == {
        f"python {AGENT}"
    }
    assert settings.env["HYDRA_ENV"] == "none"
    assert AGENT in settings.files
    assert settings.env["VC_WORKER_NUM"] == "2"


@pytest.mark.parametrize(
    ("task", "mpi_files"),
    [("worker", [AGENT]), ("logger", []), ("master", [AGENT, "etc/mpi/hostfile", "etc/mpi/machinefile"])],
)
def test_files_by_task(task, mpi_files):
    settings = pod_settings(job({"mpi": []}, master=1, worker=2, logger=1), task, 0)
    assert sorted(path for path in settings.files if path.startswith("etc/mpi/")) == sorted(mpi_files)
    assert ("MPI_HOST" in settings.env) == (task == "master")


@pytest.mark.parametrize(
    ("folder", "expected"), [("", "etc/mpi/machinefile"), ("src/deep", "../../etc/mpi/machinefile"), ("/home", None)]
)
def test_host_file_path_is_relative_to_the_working_folder(folder, expected):
    spec = JobSpec.parse(document(master={"working_dir": folder}))
    assert pod_settings(spec, "master", 0).env.get("HYDRA_HOST_FILE") == expected
    assert [remark for remark in spec.remarks if "mpirun needs the path" in remark] == list(spec.remarks)
    assert len(spec.remarks) == (expected is None)


def document(plugin=(), master=None, worker=None):
    tasks = [{"name": "master", "command": ["mpirun"]} | (master or {}), {"name": "worker"} | (worker or {})]
    return {"name": "digits", "plugins": {"mpi": list(plugin)}, "tasks": tasks}


def test_workers_without_a_command_run_the_agent():
    spec = JobSpec.parse(document())
    assert spec.task("worker").command == ("python", AGENT)
    assert JobSpec.parse(document(worker={"command": ["mine"]})).task("worker").command == ("mine",)
    assert formats.load(formats.dump(spec)).spec == spec


@pytest.mark.parametrize(
    ("arguments", "worker", "remarks"),
    [
        (["--port=22"], {}, []),
        (["--port=2222"], {}, []),
        ([], {"command": ["/usr/sbin/sshd", "-D"]}, ["plugins.mpi: on clusters of the kind local mpirun does not use"]),
    ],
)
def test_unused_worker_command_has_a_remark(arguments, worker, remarks):
    found = JobSpec.parse(document(arguments, worker=worker)).remarks
    assert len(found) == len(remarks)
    assert all(remark.startswith(start) for remark, start in zip(found, remarks, strict=True))


@pytest.mark.parametrize(
    ("arguments", "path", "sentence"),
    [
        (["--worker=wroker"], "plugins.mpi", "--worker=NAME (master, worker)"),
        (["--master=worker"], "plugins.mpi", "two of these roles"),
        (["--slots=0"], "plugins.mpi.0", "a number of ranks from 1 to 1024"),
        (["--slot=2"], "plugins.mpi.0", "Did you mean “slots”?"),
    ],
)
def test_invalid_arguments_are_refused_with_their_path(arguments, path, sentence):
    with pytest.raises(Invalid) as raised:
        JobSpec.parse(document(arguments, worker={"command": ["run"]}))
    assert [problem.path for problem in raised.value.problems] == [path]
    assert sentence in raised.value.message


VOLCANO = """
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: a}
spec:
  plugins: {mpi: ["--worker=ranks", "--port=2222"]}
  tasks:
  - {name: master, template: {spec: {containers: [{name: m, command: [mpirun, hostname]}]}}}
  - {name: ranks, replicas: 2, template: {spec: {containers: [{name: w, image: mpi}]}}}
"""


def test_manifest_may_omit_the_worker_command():
    loaded = formats.load(VOLCANO)
    assert loaded.spec.task("ranks").command == ("python", AGENT)
    assert not loaded.warnings


SECRET = bytes(range(32))


def settings_on_a_cluster(plugins, task):
    """The settings of a pod whose peers have host names instead of local addresses."""
    spec = job(plugins, master=1, worker=2)
    hosts = {(one.name, index): f"digits-{one.name}-{index}.x" for one in spec.tasks for index in range(one.replicas)}
    return settings_for(spec, task, 0, hosts, SECRET)


def test_workers_on_a_cluster_are_reached_by_ssh():
    master, worker = (
        settings_on_a_cluster({"mpi": ["--port=2222", "--slots=4"]}, task) for task in ("master", "worker")
    )
    assert master.secrets == worker.secrets != {}
    assert (
        "Host digits-worker-1 digits-worker-1.digits\n  HostName digits-worker-1.x\n  Port 2222\n"
        in (master.secrets[".ssh/config"])
    )
    assert master.mounts["/root/.ssh"] == worker.mounts["/root/.ssh"] == ".ssh"
    assert master.files[master.env["HYDRA_HOST_FILE"]] == "digits-worker-0.x:4\ndigits-worker-1.x:4\n"
    assert not {name for name in master.env if "LAUNCHER" in name or "agent" in name}
    assert worker.env[mpi_agent.PORT] == "2222"


def test_ssh_plugin_of_the_job_sets_the_key_path():
    path = "--ssh-key-file-path=/home/mpi/.ssh"
    for plugins in ({"mpi": [], "ssh": [path]}, {"ssh": [path], "mpi": []}):
        assert settings_on_a_cluster(plugins, "worker").mounts["/home/mpi/.ssh"] == ".ssh"
        assert "/root/.ssh" not in settings_on_a_cluster(plugins, "worker").mounts


@pytest.mark.parametrize("has_key", [True, False])
def test_worker_on_a_cluster_runs_sshd(monkeypatch, tmp_path, has_key):
    exec_calls, folders, key = [], [], tmp_path / ".ssh" / "id_ed25519"
    if has_key:
        key.parent.mkdir()
        key.write_text("")
    monkeypatch.delenv("HEKLA_POD_ADDRESS", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv(mpi_agent.PORT, "2222")
    monkeypatch.setattr(mpi_agent.shutil, "which", lambda *_, **__: "/usr/sbin/sshd")
    monkeypatch.setattr(mpi_agent.os, "getuid", lambda: 0)
    monkeypatch.setattr(mpi_agent.os, "makedirs", lambda path, **_: folders.append(path))
    monkeypatch.setattr(mpi_agent.os, "execv", lambda program, words: exec_calls.append(words))
    mpi_agent.main([])
    assert folders == ["/run/sshd"]
    assert exec_calls[0][:7] == ["/usr/sbin/sshd", "-D", "-e", "-f", "/dev/null", "-p", "2222"]
    assert ("-h" in exec_calls[0]) == (str(key) in exec_calls[0]) == has_key


def test_missing_sshd_is_reported(monkeypatch):
    monkeypatch.delenv("HEKLA_POD_ADDRESS", raising=False)
    monkeypatch.setattr(mpi_agent.shutil, "which", lambda *_, **__: None)
    with pytest.raises(SystemExit, match="no sshd"):
        mpi_agent.main([])


@pytest.fixture
def worker():
    """A running worker agent: its host, and its process."""
    host = f"127.65.{random.randint(1, 254)}.{random.randint(1, 254)}"
    process = subprocess.Popen([sys.executable, mpi_agent.__file__], env={**os.environ, "HEKLA_POD_ADDRESS": host})
    yield host, process
    process.kill()
    process.wait()


def agent_call(host, *command):
    return [sys.executable, mpi_agent.__file__, host, *command]


def test_agent_runs_a_command_with_the_streams_of_the_caller(worker):
    host, process = worker
    ran = subprocess.run(
        agent_call(
            host, "read", "word;", "echo", "$HEKLA_POD_ADDRESS", "$word", "$PPID;", "echo", "bad", ">&2;", "exit", "7"
        ),
        input="hello\n",
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert ran.stdout.split() == [host, "hello", str(process.pid)]
    assert (ran.stderr, ran.returncode) == ("bad\n", 7)


def test_command_ends_with_its_caller(worker, tmp_path):
    host, _ = worker
    caller = subprocess.Popen(
        agent_call(host, f"echo $$ > {tmp_path}/pid; mv {tmp_path}/pid {tmp_path}/ready; exec sleep 60")
    )
    wait_for((tmp_path / "ready").exists)
    pid = int((tmp_path / "ready").read_text())
    caller.kill()
    caller.wait()
    wait_for(lambda: not os.path.exists(f"/proc/{pid}"))


def test_caller_fails_when_its_worker_ends(worker):
    host, process = worker
    caller = subprocess.Popen(agent_call(host, "echo up; sleep 5"), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert caller.stdout.readline() == b"up\n"
    process.kill()
    assert b"has ended" in caller.communicate(timeout=30)[1]
    assert caller.returncode == 1


def wait_for(condition):
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline, "it did not come"
        time.sleep(0.05)


def test_horovod_uses_mpi():
    over_mpi = {"HOROVOD_CONTROLLER": "mpi", "HOROVOD_CPU_OPERATIONS": "mpi"}
    plain, spec = job({"mpi": []}, master=1, worker=2, logger=1), job({"horovod": []}, master=1, worker=2, logger=1)
    for task, more in (("master", over_mpi), ("worker", over_mpi), ("logger", {})):
        without, settings = pod_settings(plain, task, 0), pod_settings(spec, task, 0)
        assert (settings.env, settings.files) == ({**without.env, **more}, without.files)


def test_horovodrun_has_a_remark_about_mpirun():
    horovod = {**document(master={"command": ["horovodrun", "-np", "2"]}), "plugins": {"horovod": []}}
    spec = JobSpec.parse(horovod)
    assert spec.task("worker").command == ("python", AGENT)
    assert [remark for remark in spec.remarks if "Start ranks with mpirun" in remark] == list(spec.remarks) != []
