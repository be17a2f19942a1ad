"""The `ray` plugin: a head, and workers that join it."""

import pytest
from tests.domain.test_frameworks import pod_settings

from hekla.domain.errors import Invalid
from hekla.domain.jobspec import JobSpec


def spec(*arguments, heads=1, **commands):
    tasks = [
        {"name": "head", "replicas": heads},
        {"name": "worker", "replicas": 2},
        {"name": "driver", "command": ["run"]},
    ]
    own = [{"command": commands[task["name"]]} if task["name"] in commands else {} for task in tasks]
    tasks = [task | command for task, command in zip(tasks, own, strict=True)]
    return JobSpec.parse({"name": "digits", "plugins": {"ray": list(arguments)}, "tasks": tasks})


@pytest.mark.parametrize(
    ("arguments", "port", "dashboard"),
    [([], 6379, 8265), (["--port=7000"], 7000, 8265), (["--dashboardPort=8000"], 6379, 8000)],
)
@pytest.mark.parametrize("task", ["head", "worker", "driver"])
def test_every_task_gets_the_address_of_the_head(arguments, port, dashboard, task):
    env = pod_settings(spec(*arguments), task, 0).env
    assert env["RAY_ADDRESS"] == f"127.0.0.2:{port}"
    assert env["RAY_API_SERVER_ADDRESS"] == f"http://127.0.0.2:{dashboard}"
    assert env["RAY_TMPDIR"] == "/tmp"


def test_head_and_workers_without_a_command_run_ray_start():
    ray_job = spec("--port=7000", "--dashboardPort=8000", "--clientPort=9000")
    shell, _, head = ray_job.task("head").command
    assert shell == "sh"
    assert {"--head", "--block", "--port=7000", "--dashboard-port=8000", "--ray-client-server-port=9000"} <= {
        *head.split()
    }
    assert "--address=$RAY_ADDRESS" in ray_job.task("worker").command[2].split()
    assert ray_job.remarks == ()
    assert JobSpec.parse(ray_job.document()) == ray_job


def test_own_command_runs_with_a_remark():
    ray_job = spec(head=["mine"])
    assert ray_job.task("head").command == ("mine",)
    assert ray_job.remarks == ("plugins.ray: “head” has its own command, which runs instead of ray start.",)


@pytest.mark.parametrize("argument", ["--headContainer=ray", "--workerContainer=ray"])
def test_container_arguments_are_ignored_with_a_remark(argument):
    assert spec(argument).remarks == ("plugins.ray.0: Ignored: only the first container of a pod runs.",)


@pytest.mark.parametrize(
    ("arguments", "heads", "path", "sentence"),
    [
        (["--head=first"], 1, "plugins.ray", "--head=NAME (head, worker, driver)"),
        (["--worker=head"], 1, "plugins.ray", "two different tasks"),
        (["--dashboardPort=0"], 1, "plugins.ray.0", "a port from 1 to 65535"),
        (["--dashbordPort=1"], 1, "plugins.ray.0", "Did you mean “dashboardPort”?"),
        ([], 2, "plugins.ray", "has 2 replicas"),
        ([], 0, "plugins.ray", "has no replica"),
    ],
)
def test_invalid_arguments_are_refused_with_their_path(arguments, heads, path, sentence):
    with pytest.raises(Invalid) as raised:
        spec(*arguments, heads=heads, head=["run"], worker=["run"])
    assert [problem.path for problem in raised.value.problems] == [path]
    assert sentence in raised.value.message
