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
from tests.controller.test_external_pods import (  # noqa: F401 - fixtures
    delete_pod,
    external_namespace,
    pod_groups,
    shared,
)
from tests.kubernetes.control_plane import ControlPlane
from tests.kubernetes.proxy import Proxy
from tests.spark import recording
from tests.spark.client import PodPrograms, Spark

from hekla.apps.jobs.models import Job
from hekla.controller import audit
from hekla.controller.controllers import controllers
from hekla.domain.phases import JobPhase

pytestmark = [pytest.mark.kubernetes, pytest.mark.thorough, pytest.mark.timeout(1800)]
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
    arguments = [one.replace(recording.SERVER, proxy.url) for one in recording.arguments()]
    client = pod_programs.spark.submit(arguments, pod_programs.spark.folder / "kubeconfig")

    def is_over() -> bool:
        pod_programs.follow()
        return Job.objects.filter(phase=JobPhase.COMPLETED).exists() and client.poll() is not None

    try:
        shared.reconcile_until(is_over)
    except AssertionError as failure:
        raise AssertionError(f"{failure}\n{pod_programs.spark.logs()}") from None
    finally:
        client.kill()
        client.wait()
    (driver,) = _pods(small_cluster, external_namespace)  # which has deleted its executors
    assert "Pi is roughly 3.1" in pod_programs.spark.log(driver)
    assert (client.returncode, "Container final statuses" in pod_programs.spark.log("spark-submit")) == (0, True)
    job = Job.objects.get()
    assert (job.name, job.queue, audit.findings()) == ("pi", shared.queue, [])
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
