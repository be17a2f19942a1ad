"""Frameworks with roles and a leader (mxnet, mindspore, paddle, hcclrank): settings and validation."""

import pytest
from tests.domain.test_frameworks import job, pod_settings

from hekla.domain.errors import Invalid
from hekla.domain.jobspec import JobSpec

MXNET = {"scheduler": 1, "server": 2, "worker": 2}
MINDSPORE = {"scheduler": 1, "worker": 2}
PADDLE = {"worker": 2}
HCCL = {"master": 2, "worker": 2}


@pytest.mark.parametrize(
    ("arguments", "replicas", "pod", "expected"),
    [
        (
            {"mxnet": []},
            MXNET,
            ("server", 1),
            {
                "DMLC_ROLE": "server",
                "DMLC_PS_ROOT_URI": "127.0.0.2",
                "DMLC_PS_ROOT_PORT": "9091",
                "DMLC_NUM_SERVER": "2",
                "DMLC_NUM_WORKER": "2",
                "DMLC_NODE_HOST": "127.0.0.4",
            },
        ),
        ({"mxnet": ["--port=9000"]}, MXNET, ("scheduler", 0), {"DMLC_ROLE": "scheduler", "DMLC_PS_ROOT_PORT": "9000"}),
        (
            {"mxnet": ["--server=ps"]},
            {"ps": 1, "scheduler": 1, "worker": 1},
            ("ps", 0),
            {"DMLC_ROLE": "server", "DMLC_PS_ROOT_URI": "127.0.0.3", "DMLC_NODE_HOST": "127.0.0.2"},
        ),
        (
            {"mindspore": []},
            MINDSPORE,
            ("worker", 1),
            {
                "MS_ROLE": "MS_WORKER",
                "MS_SCHED_HOST": "127.0.0.2",
                "MS_SCHED_PORT": "8118",
                "MS_WORKER_NUM": "2",
                "MS_SERVER_NUM": None,
                "MS_WORKER_IP": "127.0.0.4",
                "MS_NODE_ID": "1",
            },
        ),
        ({"mindspore": []}, MINDSPORE, ("scheduler", 0), {"MS_ROLE": "MS_SCHED", "MS_NODE_ID": None}),
        (
            {"mindspore": ["--server=ps"]},
            MINDSPORE | {"ps": 1},
            ("ps", 0),
            {"MS_ROLE": "MS_PSERVER", "MS_SERVER_NUM": "1", "MS_WORKER_IP": "127.0.0.5"},
        ),
        (
            {"paddle": []},
            PADDLE,
            ("worker", 1),
            {
                "PADDLE_TRAINER_ID": "1",
                "PADDLE_TRAINERS_NUM": "2",
                "PADDLE_TRAINER_ENDPOINTS": "127.0.0.2:36001,127.0.0.3:36001",
                "PADDLE_CURRENT_ENDPOINT": "127.0.0.3:36001",
                "PADDLE_MASTER": "127.0.0.2:36000",
                "PADDLE_NNODES": "2",
                "PADDLE_RANK": "1",
                "POD_IP": "127.0.0.3",
                "TRAINING_ROLE": None,
            },
        ),
        (
            {"paddle": ["--port=7000"]},
            PADDLE | {"ps": 2},
            ("ps", 1),
            {
                "TRAINING_ROLE": "PSERVER",
                "PADDLE_PSERVERS_IP_PORT_LIST": "127.0.0.4:7000,127.0.0.5:7000",
                "PADDLE_TRAINERS_NUM": "2",
                "POD_IP": "127.0.0.5",
                "PADDLE_PORT": "7000",
                "PADDLE_TRAINER_ID": None,
            },
        ),
        ({"paddle": []}, PADDLE | {"ps": 1}, ("worker", 0), {"TRAINING_ROLE": "TRAINER", "PADDLE_TRAINER_ID": "0"}),
        ({"hcclrank": []}, HCCL, ("master", 1), {"RANK": "1"}),
        ({"hcclrank": []}, HCCL, ("worker", 1), {"RANK": "3"}),
        ({"hcclrank": ["--worker=ascend"]}, {"ascend": 2}, ("ascend", 1), {"RANK": "1"}),
        ({"hcclrank": [], "pytorch": []}, {"master": 1, "worker": 2}, ("worker", 1), {"RANK": "2", "WORLD_SIZE": "3"}),
    ],
)
def test_pod_gets_its_role_and_the_leader(arguments, replicas, pod, expected):
    env = pod_settings(job(arguments, **replicas), *pod).env
    assert {name: env.get(name) for name in expected} == expected


@pytest.mark.parametrize(
    ("plugin", "replicas", "prefix"),
    [
        ("mxnet", MXNET, "DMLC_"),
        ("mindspore", MINDSPORE, "MS_"),
        ("paddle", PADDLE, "PADDLE_"),
        ("hcclrank", HCCL, "RANK"),
    ],
)
def test_pods_without_a_role_get_no_settings(plugin, replicas, prefix):
    spec = job({plugin: []}, **replicas, logger=1)
    assert [name for name in pod_settings(spec, "logger", 0).env if name.startswith(prefix)] == []


@pytest.mark.parametrize(
    ("plugins", "replicas", "sentences"),
    [
        (
            {"mxnet": ["--server=ps"]},
            {"worker": 1},
            [
                "Unknown task “scheduler”. Set it with --scheduler=NAME (worker).",
                "Unknown task “ps”",
            ],
        ),
        ({"mxnet": []}, MXNET | {"scheduler": 2}, ["Only one scheduler is allowed, but “scheduler” has 2 replicas."]),
        ({"mxnet": []}, MXNET | {"server": 0}, ["The task “server” has no replicas."]),
        ({"mindspore": []}, {"worker": 1}, ["Unknown task “scheduler”"]),
        ({"mindspore": []}, MINDSPORE | {"scheduler": 2}, ["Only one scheduler is allowed"]),
        ({"paddle": []}, {"ps": 1}, ["Unknown task “worker”"]),
        ({"paddle": ["--ps=worker"]}, PADDLE, ["--worker and --ps must be two different tasks"]),
        ({"paddle": ["--master-port=36001"]}, PADDLE, ["--port and --master-port must differ"]),
        (
            {"hcclrank": []},
            {"npu": 1},
            ["No task has the name “master” or “worker”. Set --master or --worker=NAME (npu)."],
        ),
        ({"mxnet": ["--server=worker"]}, MXNET, ["One task cannot have two of these roles"]),
    ],
)
def test_all_problems_are_reported_at_once(plugins, replicas, sentences):
    with pytest.raises(Invalid) as raised:
        job(plugins, **replicas)
    problems = raised.value.problems
    assert {problem.path for problem in problems} == {f"plugins.{name}" for name in plugins}
    assert len(problems) == len(sentences)
    assert all(problem.message.startswith(start) for problem, start in zip(problems, sentences, strict=True))


def test_rank_of_the_job_takes_precedence():
    task = {"name": "worker", "replicas": 2, "command": ["run"], "env": {"RANK": "7"}}
    spec = JobSpec.parse({"name": "digits", "plugins": {"hcclrank": []}, "tasks": [task]})
    settings = pod_settings(spec, "worker", 1)
    assert (settings.env["RANK"], settings.files["etc/hccl/rankIndex"]) == ("7", "7\n")


def test_unsupported_parts_of_hcclrank_have_a_remark():
    (remark,) = job({"hcclrank": []}, **HCCL).remarks
    assert remark.startswith("plugins.hcclrank: The annotation hccl/rankIndex and RANK_TABLE_FILE are not created")
