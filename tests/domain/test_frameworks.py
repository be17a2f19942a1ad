"""Job plugins: the settings of pods with information about each other."""

import json

import pytest

from hekla.domain.errors import Invalid
from hekla.domain.frameworks import PodSettings, load_frameworks, settings_for, shares_addresses
from hekla.domain.jobspec import JobSpec


def job(plugins, **replicas):
    tasks = [{"name": name.replace("_", "-"), "replicas": n, "command": ["run"]} for name, n in replicas.items()]
    return JobSpec.parse({"name": "digits", "plugins": plugins, "tasks": tasks})


def addresses(spec):
    slots = [(task.name, index) for task in spec.tasks for index in range(task.replicas)]
    return {slot: f"127.0.0.{number}" for number, slot in enumerate(slots, start=2)}


def pod_settings(spec, task, index):
    return settings_for(spec, task, index, addresses(spec))


def test_without_plugins_there_are_no_settings():
    assert pod_settings(job({}, ps=1), "ps", 0) == PodSettings()


def test_env_sets_both_index_variables():
    assert pod_settings(job({"env": []}, worker=3), "worker", 2).env == {"VC_TASK_INDEX": "2", "VK_TASK_INDEX": "2"}


def test_indexed_sets_the_index_like_kubernetes_jobs():
    assert pod_settings(job({"indexed": []}, main=3), "main", 2).env == {"JOB_COMPLETION_INDEX": "2"}


@pytest.mark.parametrize(
    ("plugins", "expected"),
    [({}, False), ({"env": []}, False), ({"env": [], "indexed": []}, False), ({"svc": []}, True), ({"mpi": []}, True)],
)
def test_which_plugins_share_addresses(plugins, expected):
    assert shares_addresses(job(plugins, master=1, worker=2)) is expected


@pytest.mark.parametrize(
    "name", [name for name, framework in load_frameworks().items() if not framework.tells_addresses]
)
def test_plugins_that_do_not_share_addresses_have_none(name):
    settings = pod_settings(job({name: []}, main=2), "main", 0)
    assert not settings.hosts
    assert not any("127.0.0." in text for text in (*settings.env.values(), *settings.files.values()))


def test_svc_sets_variables_files_and_host_names():
    settings = pod_settings(job({"svc": []}, ps=1, gpu_worker=2), "ps", 0)
    assert settings.env == {
        "VC_PS_HOSTS": "127.0.0.2",
        "VC_PS_NUM": "1",
        "VC_GPU_WORKER_HOSTS": "127.0.0.3,127.0.0.4",
        "VC_GPU_WORKER_NUM": "2",
    }
    assert settings.files["etc/volcano/gpu-worker.host"] == "127.0.0.3\n127.0.0.4\n"
    assert settings.hosts["digits-gpu-worker-1"] == settings.hosts["digits-gpu-worker-1.digits"] == "127.0.0.4"


def test_svc_leaves_cluster_names_to_dns():
    settings = settings_for(job({"svc": []}, ps=1), "ps", 0, {("ps", 0): "digits-ps-0.digits"})
    assert (settings.hosts, settings.env["VC_PS_HOSTS"]) == ({}, "digits-ps-0.digits")


@pytest.mark.parametrize(("arguments", "closed"), [([], True), (["--disable-network-policy=true"], False)])
def test_svc_network_policy_can_be_disabled(arguments, closed):
    assert pod_settings(job({"svc": arguments}, ps=1), "ps", 0).is_closed is closed


def test_svc_variables_can_be_disabled():
    settings = pod_settings(job({"svc": ["--inject-hosts-env=false"]}, ps=1), "ps", 0)
    assert (settings.env, list(settings.files)) == ({}, ["etc/volcano/ps.host"])


@pytest.mark.parametrize(
    ("arguments", "port"), [([], 2222), (["--port=5000"], 5000), (["-port=5000"], 5000), (["--port=1", "--port=2"], 2)]
)
def test_tensorflow_describes_cluster_and_role(arguments, port):
    spec = job({"tensorflow": arguments}, ps=1, worker=2)
    hosts = {replica: address.replace("127", "10") for replica, address in addresses(spec).items()}
    settings = settings_for(spec, "worker", 1, hosts)
    assert json.loads(settings.env["TF_CONFIG"]) == {
        "cluster": {"ps": [f"10.0.0.2:{port}"], "worker": [f"10.0.0.3:{port}", f"10.0.0.4:{port}"]},
        "task": {"type": "worker", "index": 1},
    }
    assert settings.env["VC_WORKER_NUM"] == "2"


def test_servers_on_one_machine_have_different_ports():
    settings = pod_settings(job({"tensorflow": []}, worker=3), "worker", 0)
    servers = json.loads(settings.env["TF_CONFIG"])["cluster"]["worker"]
    assert [server.partition(":")[0] for server in servers] == ["127.0.0.2", "127.0.0.3", "127.0.0.4"]
    ports = {int(server.partition(":")[2]) for server in servers}
    assert len(ports) == 3
    assert all(10_000 <= port < 32_000 for port in ports)


def test_tensorflow_arguments_name_the_roles():
    settings = pod_settings(job({"tensorflow": ["--worker=trainer"]}, trainer=2, logger=1), "trainer", 0)
    assert json.loads(settings.env["TF_CONFIG"])["task"] == {"type": "worker", "index": 0}


@pytest.mark.parametrize(
    ("spec", "task"),
    [(job({"tensorflow": []}, worker=1), "worker"), (job({"tensorflow": []}, worker=2, logger=1), "logger")],
)
def test_tensorflow_needs_several_pods_and_a_role(spec, task):
    assert "TF_CONFIG" not in pod_settings(spec, task, 0).env


@pytest.mark.parametrize(
    ("task", "index", "rank"), [("master", 0, "0"), ("worker", 0, "1"), ("worker", 1, "2"), ("logger", 0, None)]
)
def test_pytorch_ranks(task, index, rank):
    env = pod_settings(job({"pytorch": []}, master=1, worker=2, logger=1), task, index).env
    assert env.get("RANK") == rank
    if rank is not None:
        assert (env["MASTER_ADDR"], env["MASTER_PORT"], env["WORLD_SIZE"]) == ("127.0.0.2", "23456", "3")


def test_pytorch_with_one_task_only():
    spec = job({"pytorch": ["--master=worker", "--port=4000"]}, worker=3)
    ranks = [pod_settings(spec, "worker", index).env["RANK"] for index in range(3)]
    env = pod_settings(spec, "worker", 2).env
    assert ranks == ["0", "1", "2"]
    assert (env["MASTER_ADDR"], env["MASTER_PORT"], env["WORLD_SIZE"]) == ("127.0.0.2", "4000", "3")


def test_xgboost_ranks_and_worker_addresses():
    spec = job({"xgboost": []}, master=1, worker=2)
    assert {
        name: value for name, value in pod_settings(spec, "worker", 1).env.items() if not name.startswith("VC_")
    } == {
        "MASTER_ADDR": "127.0.0.2",
        "MASTER_PORT": "9999",
        "WORLD_SIZE": "3",
        "RANK": "2",
        "WORKER_PORT": "9999",
        "WORKER_ADDRS": "127.0.0.3,127.0.0.4",
    }


def test_xgboost_with_only_a_master():
    env = pod_settings(job({"xgboost": []}, master=1), "master", 0).env
    assert (env["WORLD_SIZE"], "WORKER_ADDRS" in env) == ("1", False)


def test_jax_coordinator_is_the_first_process():
    env = pod_settings(job({"jax": []}, worker=2, logger=1), "worker", 1).env
    jax_env = {name: env[name] for name in ("COORDINATOR_ADDRESS", "COORDINATOR_PORT", "NUM_PROCESSES", "PROCESS_ID")}
    assert list(jax_env.values()) == ["127.0.0.2", "6666", "2", "1"]
    assert "PROCESS_ID" not in pod_settings(job({"jax": []}, worker=2, logger=1), "logger", 0).env


@pytest.mark.parametrize(
    ("arguments", "pod", "expected"),
    [
        (
            ["--nnodes=2:3", "--nproc-per-node=4"],
            ("worker", 0),
            {
                "PET_NNODES": "2:3",
                "PET_NPROC_PER_NODE": "4",
                "PET_RDZV_BACKEND": "c10d",
                "PET_RDZV_ENDPOINT": "127.0.0.2:23456",
                "PET_RDZV_ID": "digits",
                "PET_RDZV_CONF": "is_host=0",
                "PET_LOCAL_ADDR": "127.0.0.3",
                "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1",
            },
        ),
        (["--nnodes=3", "--port=5000"], ("master", 0), {"PET_NNODES": "3", "PET_RDZV_CONF": "is_host=1"}),
        (["--nnodes=1:2", "--master=worker"], ("worker", 0), {"PET_RDZV_CONF": "is_host=1"}),
        (["--nnodes=1:2", "--master=worker"], ("worker", 1), {"PET_RDZV_CONF": "is_host=0"}),
    ],
)
def test_torchrun_gets_a_rendezvous_and_no_ranks(arguments, pod, expected):
    env = pod_settings(job({"pytorch": arguments}, master=1, worker=2), *pod).env
    assert {name: env.get(name) for name in expected} == expected
    assert env.keys().isdisjoint({"RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"})


def test_without_nnodes_there_are_no_torchrun_settings():
    spec = job({"pytorch": ["--nproc-per-node=2"]}, master=1, worker=2)
    assert not [name for name in pod_settings(spec, "master", 0).env if name.startswith("PET_")]
    assert spec.remarks == (
        "plugins.pytorch: --nproc-per-node has no effect without --nnodes. Only torchrun starts several processes.",
    )


@pytest.mark.parametrize(
    ("arguments", "sentences"),
    [
        (["--nnodes=2-4"], ["--nnodes must be a number of pods, or a minimum and maximum"]),
        (["--nnodes=0:2"], ["--nnodes=0:2 is not possible"]),
        (["--nnodes=3:2"], ["--nnodes=3:2 is not possible"]),
        (["--nnodes=4"], ["--nnodes=4 is not possible. The minimum must be between 1 and 3 (all pods)"]),
        (
            ["--nnodes=4:4", "--nproc-per-node=many"],
            ["--nnodes=4:4 is not possible", "--nproc-per-node must be a number"],
        ),
    ],
)
def test_invalid_nnodes_are_refused(arguments, sentences):
    with pytest.raises(Invalid) as raised:
        job({"pytorch": arguments}, master=1, worker=2)
    messages = [problem.message for problem in raised.value.problems]
    assert len(messages) == len(sentences)
    assert all(message.startswith(start) for message, start in zip(messages, sentences, strict=True)), messages


def test_ranks_are_unique():
    spec = job({"pytorch": []}, master=2, worker=3)
    ranks = [pod_settings(spec, *slot).env["RANK"] for slot in addresses(spec)]
    assert sorted(ranks) == ["0", "1", "2", "3", "4"]


@pytest.mark.parametrize(
    ("plugins", "path", "words"),
    [
        ({"pytorh": []}, "plugins.pytorh", "Did you mean “pytorch”?"),
        ({"nonsense": []}, "plugins.nonsense", "Available: env, "),
        ({"env": ["--x=1"]}, "plugins.env.0", "takes no arguments"),
        ({"svc": ["--inject-host-env=true"]}, "plugins.svc.0", "Did you mean “inject-hosts-env”?"),
        ({"svc": ["--inject-hosts-env=maybe"]}, "plugins.svc.0", "true or false"),
        ({"tensorflow": ["--port=70000"]}, "plugins.tensorflow.0", "a port from 1 to 65535"),
        ({"tensorflow": ["--port=٣"]}, "plugins.tensorflow.0", "a port from 1 to 65535"),
        ({"tensorflow": ["--ps=", "--port"]}, "plugins.tensorflow.1", "needs a value"),
        ({"tensorflow": ["port=1"]}, "plugins.tensorflow.0", "no argument “port=1”"),
        ({"tensorflow": []}, "plugins.tensorflow", "Set the roles"),
        ({"pytorch": []}, "plugins.pytorch", "--master=NAME (task)"),
        ({"jax": []}, "plugins.jax", "--worker=NAME (task)"),
        ({"pytorch": "--port=1"}, "plugins.pytorch", "Must be a list"),
    ],
)
def test_invalid_arguments_are_refused_with_their_path(plugins, path, words):
    with pytest.raises(Invalid) as raised:
        job(plugins, task=1)
    assert {problem.path: problem.message for problem in raised.value.problems}[path].count(words) == 1


@pytest.mark.parametrize(
    ("plugins", "more", "remarks"),
    [
        ({"pytorch": ["--wait-master-timeout=300"]}, {}, []),
        (
            {"pytorch": ["--port=1", "--wait-master-timeout=60"]},
            {},
            ["plugins.pytorch.1: Ignored: the pods"],
        ),
        ({"svc": ["--publish-not-ready-addresses"]}, {}, ["plugins.svc.0: Ignored: addresses are known"]),
        ({"pytorch": []}, {"env": {"RANK": "7", "MINE": "1"}}, ["tasks.0.env.RANK: The plugin pytorch sets this too"]),
        ({"pytorch": []}, {"env": {"VC_MASTER_NUM": "7"}}, ["tasks.0.env.VC_MASTER_NUM: The plugin svc sets this too"]),
        ({"svc": []}, {"file": "etc/volcano/master.host"}, ["files.etc/volcano/master.host: The plugin svc sets this"]),
        ({}, {"env": {"RANK": "7"}}, []),
    ],
    ids=range(7),
)
def test_ignored_or_overridden_settings_have_remarks(plugins, more, remarks):
    task = {"name": "master", "command": ["run"], "env": more.get("env", {})}
    files = {more["file"]: "mine"} if "file" in more else {}
    spec = JobSpec.parse({"name": "digits", "plugins": plugins, "tasks": [task], "files": files})
    assert len(spec.remarks) == len(remarks)
    assert all(remark.startswith(start) for remark, start in zip(spec.remarks, remarks, strict=True)), spec.remarks


@pytest.mark.parametrize("path", ["etc", "etc/volcano", "etc/volcano/task.host/x"])
def test_file_cannot_replace_a_folder_of_a_plugin(path):
    document = {"name": "digits", "plugins": {"svc": []}, "tasks": [{"name": "task", "command": ["run"]}]}
    with pytest.raises(Invalid) as raised:
        JobSpec.parse({**document, "files": {path: ""}})
    assert [problem.path for problem in raised.value.problems] == [f"files.{path}"]


RING = """
from hekla.domain.frameworks import Framework, Option, PodSettings

def settings(place, options):
    return PodSettings(env={"RING": f"{options['size']} {place.task}"})

RING = Framework("ring", "A ring.", settings, options=(Option("size", "3"),))
"""


def test_custom_framework_is_found_by_its_entry_point(tmp_path, monkeypatch):
    (tmp_path / "ring_framework.py").write_text(RING)
    package = tmp_path / "ring_framework-1.dist-info"
    package.mkdir()
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: ring-framework\nVersion: 1\n")
    (package / "entry_points.txt").write_text("[hekla.frameworks]\nring = ring_framework:RING\n")
    monkeypatch.syspath_prepend(tmp_path)
    load_frameworks.cache_clear()
    try:
        assert pod_settings(job({"ring": ["--size=9"]}, ps=1), "ps", 0).env == {"RING": "9 ps"}
    finally:
        load_frameworks.cache_clear()


OPENPAI = ["--name=Digits_1", "--roles=worker:Worker", "--ports=worker/board:2", "--completion=ps:1/-1", "--shm=ps:64"]


def test_openpai_variables():
    spec = job({"openpai": OPENPAI}, worker=2, ps=1)
    env = settings_for(spec, "worker", 1, addresses(spec), owner="ali").env
    assert {name: env[name] for name in env if "PORT" not in name and "CONTAINER" not in name} == {
        "PAI_JOB_NAME": "ali~Digits_1",
        "PAI_FRAMEWORK_NAME": "ali~Digits_1",
        "PAI_USER_NAME": "ali",
        "PAI_USERNAME": "ali",
        "PAI_DEFAULT_FS_URI": "",
        "PAI_VIRTUAL_CLUSTER": "default",
        "PAI_TASK_ROLE_COUNT": "2",
        "PAI_TASK_ROLES_NUM": "2",
        "PAI_JOB_TASK_ROLE_COUNT": "2",
        "PAI_TASK_ROLE_LIST": "Worker,ps",
        "PAI_JOB_TASK_ROLE_LIST": "Worker,ps",
        "PAI_TASKS_NUM": "3",
        "PAI_JOB_TASK_COUNT": "3",
        "PAI_TASK_ROLE_TASK_COUNT_Worker": "2",
        "PAI_TASK_ROLE_TASK_COUNT_ps": "1",
        "PAI_RESOURCE_Worker": "0,0,0,0",
        "PAI_RESOURCE_ps": "0,0,0,64",
        "PAI_MIN_FAILED_TASK_COUNT_Worker": "1",
        "PAI_MIN_FAILED_TASK_COUNT_ps": "1",
        "PAI_MIN_SUCCEEDED_TASK_COUNT_Worker": "2",
        "PAI_MIN_SUCCEEDED_TASK_COUNT_ps": "-1",
        "PAI_HOST_IP_Worker_0": "127.0.0.2",
        "PAI_HOST_IP_Worker_1": "127.0.0.3",
        "PAI_HOST_IP_ps_0": "127.0.0.4",
        "PAI_TASK_ROLE_Worker_HOST_LIST": env["PAI_TASK_ROLE_Worker_HOST_LIST"],
        "PAI_TASK_ROLE_ps_HOST_LIST": env["PAI_TASK_ROLE_ps_HOST_LIST"],
        "PAI_TASK_ROLE_INSTANCES": "Worker:0,Worker:1,ps:0",
        "PAI_CURRENT_TASK_ROLE_NAME": "Worker",
        "PAI_CURRENT_TASK_ROLE_CURRENT_TASK_INDEX": "1",
        "PAI_TASK_INDEX": "1",
    }


def test_openpai_ports():
    spec = job({"openpai": OPENPAI}, worker=2, ps=1)
    env, other = pod_settings(spec, "worker", 0).env, pod_settings(spec, "ps", 0).env
    ports = [
        env[f"PAI_PORT_LIST_{pod}_{label}"] for pod in ("Worker_0", "Worker_1") for label in ("ssh", "http", "board")
    ]
    numbers = [int(number) for port in ports for number in port.split(",")]
    assert len(set(numbers)) == 8
    assert all(10_000 <= number < 30_000 for number in numbers)
    assert env["PAI_CONTAINER_HOST_board_PORT_LIST"] == env["PAI_Worker_0_board_PORT"] == ports[2]
    assert env["PAI_CURRENT_CONTAINER_IP"] == "127.0.0.2"
    assert env["PAI_CURRENT_CONTAINER_PORT"] == ports[1]
    assert [other[f"PAI_PORT_LIST_Worker_0_{label}"] for label in ("ssh", "http", "board")] == ports[:3]
    assert env["PAI_TASK_ROLE_ps_HOST_LIST"] == f"127.0.0.4:{other['PAI_CONTAINER_HOST_PORT']}"
    assert "PAI_PORT_LIST_ps_0_board" not in env


def test_openpai_omits_addresses_of_very_large_jobs():
    spec = job({"openpai": []}, worker=1001)
    assert spec.remarks == (
        "plugins.openpai: The job has more than 1,000 pods, so each pod gets only its own address and ports.",
    )
    env = pod_settings(spec, "worker", 7).env
    assert env["PAI_CONTAINER_HOST_IP"] == "127.0.0.9"
    assert "PAI_HOST_IP_worker_7" not in env


@pytest.mark.parametrize(
    ("argument", "sentence"),
    [
        ("--ports=worker/web", "--ports must have the form --ports=worker/http:1. “worker/web” does not."),
        ("--ports=boss/web:1", "--ports names the task “boss”, which the job does not have."),
        ("--ports=worker/web:101", "A pod has at most 100 ports."),
        ("--roles=worker:ps", "Two tasks have the same name in --roles."),
        ("--completion=worker:0", "--completion must have the form"),
    ],
)
def test_invalid_openpai_arguments(argument, sentence):
    with pytest.raises(Invalid) as raised:
        job({"openpai": [argument]}, worker=1, ps=1)
    assert [
        problem
        for problem in raised.value.problems
        if problem.path == "plugins.openpai" and sentence in problem.message
    ]
