"""The plugins `spark` and `flink`: one pod leads, and the others join it."""

import pytest
from tests.domain.test_frameworks import addresses, job, pod_settings

from hekla.domain.errors import Invalid
from hekla.domain.frameworks import settings_for
from hekla.domain.jobspec import JobSpec


@pytest.mark.parametrize(("arguments", "port"), [([], "7077"), (["--port=7000"], "7000")])
@pytest.mark.parametrize("task", ["driver", "executor"])
def test_every_pod_gets_the_address_of_the_master(arguments, port, task):
    env = pod_settings(job({"spark": arguments}, driver=1, executor=2), task, 0).env
    expected = {"SPARK_MASTER_HOST": "127.0.0.2", "SPARK_MASTER_PORT": port, "MASTER": f"spark://127.0.0.2:{port}"}
    assert expected.items() <= env.items()


def test_pods_of_one_machine_listen_at_their_own_addresses():
    spec = job({"spark": []}, driver=1, executor=2)
    assert pod_settings(spec, "executor", 1).env["SPARK_LOCAL_IP"] == "127.0.0.4"
    names = {slot: f"digits-{slot[0]}-{slot[1]}.digits" for slot in addresses(spec)}
    env = settings_for(spec, "executor", 1, names).env
    assert ("SPARK_LOCAL_IP" in env, env["MASTER"]) == (False, "spark://digits-driver-0.digits:7077")


@pytest.mark.parametrize("task", ["jobmanager", "taskmanager"])
def test_every_pod_gets_the_address_of_the_job_manager(task):
    env = pod_settings(job({"flink": []}, jobmanager=1, taskmanager=2), task, 0).env
    assert env["JOB_MANAGER_RPC_ADDRESS"] == "127.0.0.2"


def test_pods_without_a_command_start_the_programs_of_the_framework():
    tasks = [{"name": "jobmanager"}, {"name": "taskmanager", "replicas": 2}]
    flink = JobSpec.parse({"name": "a", "plugins": {"flink": ["--port=7000"]}, "tasks": tasks})
    lines = [task.command[2] for task in flink.tasks]
    assert [line.partition(".sh")[0].rpartition("}")[2] for line in lines] == ["jobmanager", "taskmanager"]
    assert all("-Djobmanager.rpc.port=7000" in line.split() for line in lines)
    tasks = [{"name": "driver", "command": ["run"]}, {"name": "executor", "replicas": 2}]
    spark = JobSpec.parse({"name": "a", "plugins": {"spark": []}, "tasks": tasks})
    assert ".worker.Worker" in spark.task("executor").command[2]


@pytest.mark.parametrize(
    ("plugins", "replicas", "sentence"),
    [
        ({"spark": []}, {"executor": 2}, "--driver=NAME (executor)"),
        ({"spark": []}, {"driver": 2}, "Only one driver is allowed"),
        ({"flink": []}, {"taskmanager": 2}, "--jobmanager=NAME (taskmanager)"),
        ({"flink": []}, {"jobmanager": 2}, "Only one jobmanager is allowed"),
    ],
)
def test_the_leading_pod_is_required_once(plugins, replicas, sentence):
    with pytest.raises(Invalid, match=sentence.replace("(", r"\(").replace(")", r"\)")):
        job(plugins, **replicas)
