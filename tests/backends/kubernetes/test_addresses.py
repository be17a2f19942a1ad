"""Addresses and keys of the pods of a job on Kubernetes: host names, SSH keys and network policies."""

import base64
import dataclasses
from collections.abc import Callable
from typing import Any

import pytest
from tests.backends.conftest import ClusterFixture
from tests.kubernetes.control_plane import ControlPlane

from hekla.backends.base import PodKey, PodOrder, StartRefused
from hekla.backends.kubernetes import names, projected_files
from hekla.backends.kubernetes.config import KubernetesConfig
from hekla.backends.kubernetes.manifests import Manifests
from hekla.domain.addresses import Replica
from hekla.domain.frameworks import settings_for
from hekla.domain.jobspec import JobSpec
from hekla.domain.phases import PodPhase

Object = dict[str, Any]
TASKS = [{"name": "ps", "command": ["run"]}, {"name": "worker", "replicas": 2, "command": ["run"]}]
REPLICAS = [("ps", 0), ("worker", 0), ("worker", 1)]
SECRET = bytes(range(32))


@pytest.fixture
def cloud(make_cluster: Callable[[str], ClusterFixture]) -> ClusterFixture:
    return make_cluster("kubernetes")


def addresses(job: str) -> dict[tuple[str, int], str]:
    found = enumerate(REPLICAS)
    return {place: names.address_of(Replica(job, "digits", *place, number)) for number, place in found}


def order_for(plugins: dict[str, list[str]], task: str = "ps", index: int = 0, node: str = "n1") -> PodOrder:
    """An order as the controller creates it."""
    spec, hosts = JobSpec.parse({"name": "digits", "plugins": plugins, "tasks": TASKS}), addresses("job")
    settings = settings_for(spec, task, index, hosts, SECRET)
    return PodOrder(
        key=PodKey("job", task, index, 0),
        node=node,
        command=("sh",),
        address=hosts[task, index],
        env={**settings.env, "HEKLA_SIM_SECONDS": "1000000"},
        files=settings.files,
        secrets=settings.secrets,
        mounts=settings.mounts,
        is_closed=settings.is_closed,
    )


def manifest(order: PodOrder) -> Object:
    return Manifests("c1", KubernetesConfig()).pod(order)


def files_at(pod: Object, order: PodOrder, path: str) -> dict[str, tuple[str, int]]:
    """The files of a folder of the pod: text and mode by name."""
    (main,) = pod["spec"]["containers"]
    (mount,) = [one for one in main["volumeMounts"] if one["mountPath"] == path]
    (volume,) = [one["projected"] for one in pod["spec"]["volumes"] if one["name"] == mount["name"]]
    texts = {projected_files.file_key(name): text for name, text in {**order.files, **order.secrets}.items()}
    items = [item for source in volume["sources"] for kind in source.values() for item in kind["items"]]
    assert all(item["path"].startswith(f"{mount['subPath']}/") for item in items)
    below = {item["path"].removeprefix(f"{mount['subPath']}/"): item["key"] for item in items}
    return {name: (texts[key], volume["defaultMode"]) for name, key in below.items()}


def published_names(plane: ControlPlane, namespace: str) -> dict[str, str]:
    """The names in the cluster's DNS, each with its pod."""
    slices = plane.request("GET", f"/apis/discovery.k8s.io/v1/namespaces/{namespace}/endpointslices")["items"]
    return {
        f"{endpoint['hostname']}.{one['metadata']['labels']['kubernetes.io/service-name']}": endpoint["targetRef"][
            "name"
        ]
        for one in slices
        for endpoint in one["endpoints"] or ()
        if "hostname" in endpoint
    }


@pytest.mark.kubernetes
def test_dns_has_exactly_the_names_in_the_environment_of_pods(
    cloud: ClusterFixture, small_cluster: ControlPlane, granted_namespace: str
) -> None:
    node = cloud.backend.nodes()[0].name
    for task, index in REPLICAS:
        cloud.started(order_for({"svc": []}, task, index, node))
    expected = {address: PodKey("job", task, index, 0).name for (task, index), address in addresses("job").items()}
    small_cluster.wait_until(lambda: published_names(small_cluster, granted_namespace) == expected, 60)
    order = order_for({"svc": []})
    assert [order.env["VC_PS_HOSTS"], *order.env["VC_WORKER_HOSTS"].split(",")] == list(expected)
    config_map = small_cluster.request("GET", f"/api/v1/namespaces/{granted_namespace}/configmaps/{order.key.name}")
    assert base64.b64decode(
        config_map["binaryData"][projected_files.file_key("etc/volcano/worker.host")]
    ).decode().split() == [address for address in expected if "-worker-" in address]
    (service,) = small_cluster.request("GET", f"/api/v1/namespaces/{granted_namespace}/services")["items"]
    assert (service["spec"]["clusterIP"], service["spec"]["publishNotReadyAddresses"]) == ("None", True)
    cloud.backend.remove("job")


def test_pod_has_the_host_name_of_volcano_and_a_search_domain() -> None:
    spec = manifest(order_for({"svc": []}, "worker", 1))["spec"]
    assert (spec["hostname"], spec["subdomain"]) == ("digits-worker-1", "job-job")
    assert spec["dnsConfig"] == {"searches": ["job-job.hekla.svc.cluster.local"]}


def test_jobs_of_one_name_have_different_addresses() -> None:
    assert not set(addresses("one").values()) & set(addresses("other").values())


def test_host_files_are_where_volcano_has_them() -> None:
    order = order_for({"svc": []})
    found = files_at(manifest(order), order, "/etc/volcano")
    assert found["worker.host"][0] == "digits-worker-0.job-job\ndigits-worker-1.job-job\n"
    assert found["worker.host"][1] & 0o444 == 0o444


@pytest.mark.parametrize(
    ("arguments", "path", "mode"),
    [([], "/root/.ssh", 0o600), (["--ssh-key-file-path=/home/mpi/.ssh"], "/home/mpi/.ssh", 0o444)],
)
def test_ssh_keys_are_in_the_home_of_their_user_with_the_right_mode(arguments: list[str], path: str, mode: int) -> None:
    """Root's ssh refuses a private key that others may read. Another user must be able to read the files of root."""
    order = order_for({"ssh": arguments})
    found = files_at(manifest(order), order, path)
    assert set(found) == {"id_ed25519", "id_ed25519.pub", "authorized_keys", "config"}
    assert {file[1] for file in found.values()} == {mode}
    assert "Host digits-worker-1 digits-worker-1.digits\n  HostName digits-worker-1.job-job\n" in found["config"][0]
    assert f"IdentityFile {path}/id_ed25519\n" in found["config"][0]


def test_invalid_mount_path_is_refused() -> None:
    for path in ("/", "etc", "/etc/../x", "/a:b"):
        with pytest.raises(StartRefused):
            manifest(dataclasses.replace(order_for({}), mounts={path: "etc"}))


@pytest.mark.kubernetes
@pytest.mark.parametrize("plugins", [{"svc": [], "ssh": []}, {"ssh": ["--ssh-key-file-path=/home/mpi/.ssh"]}])
def test_api_server_accepts_pods_with_job_plugins(cloud: ClusterFixture, plugins: dict[str, list[str]]) -> None:
    key = cloud.started(order_for(plugins, node=cloud.backend.nodes()[0].name))
    assert cloud.until(key, PodPhase.RUNNING)
    cloud.backend.remove("job")


@pytest.mark.kubernetes
@pytest.mark.parametrize(("arguments", "count"), [([], 1), (["--disable-network-policy=true"], 0)])
def test_network_policy_restricts_a_job_to_itself_and_its_ingress_unless_disabled(
    cloud: ClusterFixture, small_cluster: ControlPlane, granted_namespace: str, arguments: list[str], count: int
) -> None:
    key = cloud.started(order_for({"svc": arguments}, node=cloud.backend.nodes()[0].name))
    path = f"/apis/networking.k8s.io/v1/namespaces/{granted_namespace}/networkpolicies"
    found = small_cluster.request("GET", path)["items"]
    assert len(found) == 1
    pod = small_cluster.request("GET", f"/api/v1/namespaces/{granted_namespace}/pods/{key.name}")
    assert (names.CLOSED in pod["metadata"]["labels"]) == bool(count)
    for policy in found:
        selector = {"matchLabels": names.job_labels("c1", "job")}
        ours = {"podSelector": selector}
        ingress = {"ingress": [{"from": [ours]}]} if count else {}
        types = ["Ingress", "Egress"] if count else ["Egress"]
        assert policy["spec"] == {**ours, "policyTypes": types, "egress": [{"to": [ours]}], **ingress}
        assert selector["matchLabels"].items() <= pod["metadata"]["labels"].items()
    cloud.backend.remove("job")
    assert not small_cluster.request("GET", path)["items"]
    assert not cloud.backend.inventory().present


@pytest.mark.kubernetes
def test_late_network_policy_is_listed_and_removed(cloud: ClusterFixture) -> None:
    backend = cloud.backend
    order = order_for({"svc": []})
    backend.parts.api.create(f"/apis/networking.k8s.io/v1/namespaces/{backend.parts.config.namespace}/networkpolicies",
                        Manifests("c1", KubernetesConfig()).policy(order))  # fmt: skip
    assert backend.inventory().present == {"job"}
    backend.remove("job")
    assert not backend.inventory().present
