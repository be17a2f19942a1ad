"""JobConfigs through the OpenPAI API, run to completion by the controller."""

import json
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from rest_framework.test import APIClient
from tests.api.openpai import V1, V2, config, send
from tests.controller.conftest import World

from hekla.apps.accounts import services as accounts
from hekla.apps.event_log.models import LoggedEvent
from hekla.apps.jobs.models import Job
from hekla.controller.controllers import controllers
from hekla.lib import clock
from hekla.pages.home import examples

EXAMPLES = Path(examples.FOLDER) / "openpai"
local = pytest.mark.parametrize("world", ["local"], indirect=True)
simulated = pytest.mark.parametrize("world", ["simulated"], indirect=True)


@pytest.fixture
def world(request: pytest.FixtureRequest, transactional_db: None, settings, tmp_path) -> Iterator[World]:
    """One node with four CPUs. Simulated pods without a duration end at once."""
    settings.HEKLA_HOME = tmp_path
    controllers.reset()
    size = {"cpu": "4", "memory": "8Gi", "pods": "20"}
    of_simulation = {"nodes": [{"name": "n", "allocatable": size}], "seed": 1, "speed": 1000}
    yield World.found(request.param, {"allocatable": size} if request.param == "local" else of_simulation)
    controllers.reset()


@pytest.fixture
def client(world: World) -> APIClient:
    """An API client with Alice's token."""
    token = accounts.create_token(world.alice, name="test", lifetime=timedelta(hours=1), now=clock.now())
    return APIClient(HTTP_AUTHORIZATION=f"Bearer {token}")


def state(client: APIClient, name: str) -> str:
    return str(client.get(f"{V2}/jobs/alice~{name}").json()["jobStatus"]["state"])


def until_it_ends(world: World, client: APIClient, name: str) -> dict[str, Any]:
    """Waits for the end, and returns the job as the OpenPAI API describes it."""
    world.reconcile_until(lambda: state(client, name) in ("SUCCEEDED", "FAILED", "STOPPED"))
    return dict(client.get(f"{V2}/jobs/alice~{name}").json())


def log(client: APIClient, name: str, role: str, index: int = 0) -> str:
    place = f"{V2}/jobs/alice~{name}/attempts/0/taskRoles/{role}/taskIndex/{index}/attempts/0/logs"
    (where,) = client.get(place).json()["locations"]
    note = "[hekla] Pods of this cluster are processes, so the image python:3.12 is not used.\n"
    return client.get(where["uri"]).content.decode().removeprefix(note)


@simulated
def test_examples_complete(world: World, client: APIClient) -> None:
    sent = client.post(f"{V2}/jobs", (EXAMPLES / "job.yaml").read_text(), content_type="text/yaml")
    old = json.loads((EXAMPLES / "job.json").read_text())
    assert (sent.status_code, client.put(f"{V1}/user/alice/jobs/{old['jobName']}", old, format="json").status_code) == (
        202,
        202,
    )
    for name, role, pods in (("openpai_pi", "counter", 2), ("openpai.before", "main", 1)):
        detail = until_it_ends(world, client, name)
        assert (detail["jobStatus"]["state"], detail["jobStatus"]["appExitCode"]) == ("SUCCEEDED", 0)
        tasks = detail["taskRoles"][role]["taskStatuses"]
        assert [(task["taskState"], task["containerExitCode"]) for task in tasks] == [("SUCCEEDED", 0)] * pods
    assert [job["state"] for job in client.get(f"{V1}/jobs?order=jobName,ASC").json()] == ["SUCCEEDED", "SUCCEEDED"]


@local
def test_examples_complete_on_this_machine(world: World, client: APIClient) -> None:
    text = (EXAMPLES / "job.yaml").read_text().replace("points: 2000000", "points: 100000")
    assert client.post(f"{V2}/jobs", text, content_type="text/yaml").status_code == 202
    old = json.loads((EXAMPLES / "job.json").read_text())
    assert client.post(f"{V1}/user/alice/jobs", old, format="json").status_code == 202
    for name in ("openpai_pi", "openpai.before"):
        assert until_it_ends(world, client, name)["jobStatus"]["state"] == "SUCCEEDED", log(client, name, "counter")
    first = log(client, "openpai_pi", "counter")
    assert first.startswith("alice~openpai_pi: pod 0 found ")
    assert "pi is about 3.1" in first
    task = client.get(f"{V2}/jobs/alice~openpai.before").json()["taskRoles"]["main"]["taskStatuses"][0]
    where = f"{task['containerIp']}:{task['containerPorts']['web']}"
    assert log(client, "openpai.before", "main") == f"alice runs alice~openpai.before at {where}\n"


@local
def test_pods_have_the_variables_of_openpai(world: World, client: APIClient) -> None:
    show = {"commands": ["env | grep ^PAI_ | sort"], "instances": 2, "resourcePerInstance": {
        "cpu": 1, "memoryMB": 64, "gpu": 0, "ports": {"board": 2},
    }}  # fmt: skip
    send(client, config("Show_It", role=show))
    statuses = until_it_ends(world, client, "Show_It")["taskRoles"]["worker"]["taskStatuses"]
    env = dict(line.split("=", 1) for line in log(client, "Show_It", "worker", 1).splitlines())
    assert {
        name: env[name] for name in env if "PORT" not in name and "HOST" not in name and "CONTAINER" not in name
    } == {
        "PAI_CURRENT_TASK_ROLE_CURRENT_TASK_INDEX": "1",
        "PAI_CURRENT_TASK_ROLE_NAME": "worker",
        "PAI_DEFAULT_FS_URI": "",
        "PAI_FRAMEWORK_NAME": "alice~Show_It",
        "PAI_JOB_NAME": "alice~Show_It",
        "PAI_JOB_TASK_COUNT": "2",
        "PAI_JOB_TASK_ROLE_COUNT": "1",
        "PAI_JOB_TASK_ROLE_LIST": "worker",
        "PAI_MIN_FAILED_TASK_COUNT_worker": "1",
        "PAI_MIN_SUCCEEDED_TASK_COUNT_worker": "2",
        "PAI_RESOURCE_worker": "0,1,64,0",
        "PAI_TASK_INDEX": "1",
        "PAI_TASK_ROLE_COUNT": "1",
        "PAI_TASK_ROLE_INSTANCES": "worker:0,worker:1",
        "PAI_TASK_ROLE_LIST": "worker",
        "PAI_TASK_ROLE_TASK_COUNT_worker": "2",
        "PAI_TASK_ROLES_NUM": "1",
        "PAI_TASKS_NUM": "2",
        "PAI_USERNAME": "alice",
        "PAI_USER_NAME": "alice",
        "PAI_VIRTUAL_CLUSTER": "default",
    }
    for task in statuses:
        index, ports = task["taskIndex"], task["containerPorts"]
        assert env[f"PAI_HOST_IP_worker_{index}"] == task["containerIp"]
        assert {label: env[f"PAI_PORT_LIST_worker_{index}_{label}"] for label in ("ssh", "http", "board")} == ports
    assert env["PAI_CURRENT_CONTAINER_IP"] == statuses[1]["containerIp"]
    assert env["PAI_CONTAINER_HOST_board_PORT_LIST"] == statuses[1]["containerPorts"]["board"]


@local
def test_only_the_pod_gets_the_secrets(world: World, client: APIClient, caplog) -> None:
    length = "word='<% $secrets.login.word %>'\ntest ${#word} = 11 && echo <% $parameters.said %>"
    role = {"commands": [length, "env | grep sesame || echo nothing in the environment"]}
    send(client, config("opens", role=role, secrets={"login": {"word": "open-sesame"}}, parameters={"said": "opened"}))
    assert until_it_ends(world, client, "opens")["jobStatus"]["state"] == "SUCCEEDED", log(client, "opens", "worker")
    assert log(client, "opens", "worker") == "opened\nnothing in the environment\n"
    texts = [str(list(LoggedEvent.objects.values())), str(list(Job.objects.values())), caplog.text]
    texts += [client.get(f"{V2}/jobs/alice~opens{more}").content.decode() for more in ("", "/config", "/events")]
    assert not [text for text in texts if "open-sesame" in text]


@local
def test_failed_and_stopped_jobs_have_the_states_of_openpai(world: World, client: APIClient) -> None:
    bad = {"instances": 2, "commands": ['if [ "$PAI_TASK_INDEX" = 1 ]; then exit 3; fi', "exec sleep 60"]}
    send(client, config("bad", role=bad))
    status = until_it_ends(world, client, "bad")["jobStatus"]
    assert (status["state"], status["appExitCode"], status["appExitTriggerTaskIndex"]) == ("FAILED", 3, 1)
    send(client, config("long", role={"commands": ["exec sleep 60"]}))
    world.reconcile_until(lambda: state(client, "long") == "RUNNING")
    assert client.put(f"{V2}/jobs/alice~long/executionType", {"value": "STOP"}, format="json").status_code == 202
    assert until_it_ends(world, client, "long")["jobStatus"]["state"] == "STOPPED"
    assert [job["name"] for job in client.get(f"{V2}/jobs?state=FAILED").json()] == ["bad"]


@simulated
def test_first_completed_role_completes_the_job(world: World, client: APIClient) -> None:
    """The servers would run for ever; `minSucceededInstances: -1` excludes them from the wait."""
    document = config("trained")
    worker = document["taskRoles"]["worker"]
    document["taskRoles"] = {"worker": worker, "ps": {**worker, "completion": {"minSucceededInstances": -1}}}
    send(client, document)
    job = Job.objects.get()
    servers = next(task for task in job.spec["tasks"] if task["name"] == "ps")
    servers["env"] = {"HEKLA_SIM_SECONDS": "10000000"}
    job.save()
    detail = until_it_ends(world, client, "trained")
    assert detail["jobStatus"]["state"] == "SUCCEEDED"
    states = {role: one["taskStatuses"][0]["taskState"] for role, one in detail["taskRoles"].items()}
    assert states == {"worker": "SUCCEEDED", "ps": "STOPPED"}


@simulated
def test_job_is_retried_and_every_attempt_is_listed(world: World, client: APIClient) -> None:
    send(client, config("again", jobRetryCount=2))
    job = Job.objects.get()
    job.spec["tasks"][0]["env"] = {"HEKLA_SIM_EXIT": "5", "HEKLA_SIM_SECONDS": "0.1"}
    job.save()
    detail = until_it_ends(world, client, "again")
    assert (detail["jobStatus"]["state"], detail["jobStatus"]["retries"], detail["jobStatus"]["attemptId"]) == (
        "FAILED",
        2,
        2,
    )
    attempts = client.get(f"{V2}/jobs/alice~again/job-attempts").json()
    assert [(one["attemptIndex"], one["state"], one["exitCode"]) for one in attempts] == [
        (2, "FAILED", 5),
        (0, "FAILED", 5),
        (1, "FAILED", 5),
    ]


@simulated
def test_config_is_returned_as_it_was_submitted(world: World, client: APIClient) -> None:
    text = (EXAMPLES / "job.yaml").read_text()
    client.post(f"{V2}/jobs", text, content_type="text/yaml")
    assert yaml.safe_load(client.get(f"{V2}/jobs/alice~openpai_pi/config").content) == yaml.safe_load(text)
