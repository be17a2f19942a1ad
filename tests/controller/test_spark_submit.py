"""The real `spark-submit` and a real application of Spark, whose pods Hekla places on a real API server.

The command, the settings and the PodGroup are those of the help. Only the machines are pretended: the programs of the
driver and the executors run beside the test, with the arguments of their pods.
"""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.controller import conftest
from tests.controller.conftest import World
from tests.controller.external_pods import (  # noqa: F401 - fixtures
    create_pod_group,
    delete_pod,
    external_namespace,
    pod_groups,
    shared,
)
from tests.controller.fleet import are_all_over
from tests.kubernetes.control_plane import ControlPlane
from tests.kubernetes.proxy import Proxy
from tests.spark import recording
from tests.spark.client import PodPrograms, Spark

from hekla.apps.event_log.models import LoggedEvent
from hekla.apps.jobs.models import Job
from hekla.controller import audit
from hekla.controller.controllers import controllers
from hekla.domain.phases import JobPhase

pytestmark = [pytest.mark.kubernetes, pytest.mark.thorough]
END_SECONDS = 600.0


@pytest.fixture(autouse=True)
def very_long_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Four Java processes start."""
    monkeypatch.setattr(conftest, "LAST_SECONDS", END_SECONDS)


@pytest.fixture
def spark_account(small_cluster: ControlPlane, external_namespace: str) -> None:  # noqa: F811
    """The service account of the drivers, with the permissions that Spark's documentation names."""
    account = {"metadata": {"name": "spark"}}
    small_cluster.request("POST", f"/api/v1/namespaces/{external_namespace}/serviceaccounts", account)
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "edit"}
    subject = {"kind": "ServiceAccount", "name": "spark", "namespace": external_namespace}
    place = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{external_namespace}/rolebindings"
    small_cluster.request("POST", place, {"metadata": {"name": "spark"}, "roleRef": role, "subjects": [subject]})


@pytest.fixture
def proxy(small_cluster: ControlPlane) -> Iterator[Proxy]:
    """Between Spark and the API server, to record what Spark sends."""
    with Proxy(small_cluster).listening() as made:
        yield made


@pytest.fixture
def spark(tmp_path: Path, external_namespace: str, small_cluster: ControlPlane, proxy: Proxy) -> Spark:  # noqa: F811
    """Spark, with the files of the help and a kubeconfig."""
    made = Spark(tmp_path / "spark")
    for name, text in recording.files().items():
        (made.folder / name).write_text(text.replace(recording.NAMESPACE, external_namespace))
    (made.folder / "kubeconfig").write_text(json.dumps(proxy.kubeconfig(small_cluster.token)))
    return made


@pytest.fixture
def pod_programs(
    spark: Spark,
    small_cluster: ControlPlane,
    external_namespace: str,  # noqa: F811
    proxy: Proxy,
    pod_groups: None,  # noqa: F811
    spark_account: None,
) -> Iterator[PodPrograms]:
    """The programs of the pods that Spark creates."""
    made = PodPrograms(spark, small_cluster, external_namespace, proxy.url)
    yield made
    made.end()


def test_application_of_the_help_runs(
    shared: World,  # noqa: F811
    small_cluster: ControlPlane,
    external_namespace: str,  # noqa: F811
    pod_programs: PodPrograms,
    proxy: Proxy,
) -> None:
    _submit(shared, pod_programs, recording.arguments())
    (driver,) = _pods(small_cluster, external_namespace)  # which has deleted its executors
    assert "Pi is roughly 3.1" in pod_programs.spark.log(driver)
    assert "termination reason: Completed" in pod_programs.spark.log("spark-submit")
    job = Job.objects.get()
    assert (job.name, job.queue, job.phase, audit.findings()) == ("pi", shared.queue, JobPhase.COMPLETED, [])
    assert sorted((pod.task, bool(pod.started_at), bool(pod.node)) for pod in job.pods.all()) == [
        ("driver", True, True),
        ("executor", True, True),
        ("executor", True, True),
    ]
    _compare_with_recording(proxy, external_namespace)
    delete_pod(small_cluster, external_namespace, driver)
    groups = f"/apis/scheduling.volcano.sh/v1beta1/namespaces/{external_namespace}/podgroups"
    small_cluster.wait_until(lambda: not small_cluster.request("GET", groups)["items"], 60.0)
    controllers.reconcile(shared.cluster)
    assert Job.objects.get().phase == JobPhase.COMPLETED


def test_executors_of_a_client_run_as_a_gang(
    shared: World,  # noqa: F811
    small_cluster: ControlPlane,
    external_namespace: str,  # noqa: F811
    pod_programs: PodPrograms,
) -> None:
    """In the client mode, the executors name a PodGroup that the user has created."""
    create_pod_group(small_cluster, external_namespace, "notebook", 2, queue="default")
    settings = pod_programs.spark.folder / "hekla.conf"
    lines = settings.read_text().splitlines()
    own = [line for line in lines if "featureSteps" not in line and "podGroupTemplateFile" not in line]
    own.append("spark.kubernetes.executor.annotation.scheduling.k8s.io/group-name notebook")
    settings.write_text("\n".join(own))
    *options, program = recording.arguments()
    options[options.index("cluster")] = "client"
    _submit(shared, pod_programs, [*options, program.replace("local:///opt/spark", str(pod_programs.spark.home))])
    assert "Pi is roughly 3.1" in pod_programs.spark.log("spark-submit")
    assert _pods(small_cluster, external_namespace) == []
    job = Job.objects.get()
    assert (job.queue, job.spec["min_available"], audit.findings()) == (shared.queue, 2, [])
    starts = LoggedEvent.objects.filter(kind="PodBound").values_list("payload__task", "at")
    assert [task for task, _at in starts] == ["executor", "executor"]
    assert len({at for _task, at in starts}) == 1, "the gang is bound in one decision"


def _submit(world: World, programs: PodPrograms, arguments: list[str]) -> None:
    """Submit an application, and run it until the client has ended without an error and the job is over."""
    own = [one.replace(recording.SERVER, programs.server) for one in arguments]
    client = programs.spark.submit(own, programs.spark.folder / "kubeconfig")

    def is_over() -> bool:
        programs.follow()
        return client.poll() is not None and Job.objects.exists() and are_all_over()

    try:
        world.reconcile_until(is_over)
    except AssertionError as failure:
        raise AssertionError(f"{failure}\n{programs.spark.logs()}") from None
    finally:
        client.kill()
        client.wait()
    assert client.returncode == 0, programs.spark.logs()


def _pods(plane: ControlPlane, namespace: str) -> list[str]:
    found = plane.request("GET", f"/api/v1/namespaces/{namespace}/pods")["items"]
    return [one["metadata"]["name"] for one in found]


def _compare_with_recording(proxy: Proxy, namespace: str) -> None:
    """The PodGroup and the pods that Spark has created are the recorded ones; records them if there are none."""
    group = proxy.done("PATCH podgroups")[0]
    found = recording.document([group.body, *(one.body for one in proxy.done("POST pods"))], namespace)
    if not recording.FILE.exists():
        recording.FILE.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    assert found == recording.recorded()
