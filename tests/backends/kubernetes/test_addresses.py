"""Pods of a job reach one another by name, with keys where programs look for them, and others are kept out."""

import base64
import dataclasses
from collections.abc import Callable
from typing import Any

import pytest
from tests.backends.conftest import Place
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
def cloud(make_place: Callable[[str], Place]) -> Place:
    return make_place("kubernetes")


def addresses(job: str) -> dict[tuple[str, int], str]:
    found = enumerate(REPLICAS)
    return {place: names.address_of(Replica(job, "digits", *place, number)) for number, place in found}


def ordered(plugins: dict[str, list[str]], task: str = "ps", index: int = 0, node: str = "n1") -> PodOrder:
    """As the controller orders it."""
    spec, hosts = JobSpec.parse({"name": "digits", "plugins": plugins, "tasks": TASKS}), addresses("job")
    told = settings_for(spec, task, index, hosts, SECRET)
    return PodOrder(
        key=PodKey("job", task, index, 0),
        node=node,
        command=("sh",),
        address=hosts[task, index],
        env={**told.env, "HEKLA_SIM_SECONDS": "1000000"},
        files=told.files,
        secrets=told.secrets,
        mounts=told.mounts,
        is_closed=told.is_closed,
    )


def manifest(order: PodOrder) -> Object:
    return Manifests("c1", KubernetesConfig()).pod(order)


def files_at(pod: Object, order: PodOrder, path: str) -> dict[str, tuple[str, int]]:
    """What the pod finds in a folder: text and mode of each file, by its name."""
    (main,) = pod["spec"]["containers"]
    (mount,) = [one for one in main["volumeMounts"] if one["mountPath"] == path]
    (volume,) = [one["projected"] for one in pod["spec"]["volumes"] if one["name"] == mount["name"]]
    texts = {projected_files.file_key(name): text for name, text in {**order.files, **order.secrets}.items()}
    items = [item for source in volume["sources"] for kind in source.values() for item in kind["items"]]
    assert all(item["path"].startswith(f"{mount['subPath']}/") for item in items)
    below = {item["path"].removeprefix(f"{mount['subPath']}/"): item["key"] for item in items}
    return {name: (texts[key], volume["defaultMode"]) for name, key in below.items()}


def published(plane: ControlPlane, namespace: str) -> dict[str, str]:
    """The names that the cluster's DNS is told of, with whose they are."""
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
def test_the_cluster_publishes_exactly_the_names_that_pods_are_told(
    cloud: Place, small_cluster: ControlPlane, given_namespace: str
) -> None:
    node = cloud.backend.nodes()[0].name
    for task, index in REPLICAS:
        cloud.started(ordered({"svc": []}, task, index, node))
    expected = {address: PodKey("job", task, index, 0).name for (task, index), address in addresses("job").items()}
    small_cluster.wait_until(lambda: published(small_cluster, given_namespace) == expected, 60)
    told = ordered({"svc": []})
    assert [told.env["VC_PS_HOSTS"], *told.env["VC_WORKER_HOSTS"].split(",")] == list(expected)
    kept = small_cluster.request("GET", f"/api/v1/namespaces/{given_namespace}/configmaps/{told.key.name}")
    assert base64.b64decode(
        kept["binaryData"][projected_files.file_key("etc/volcano/worker.host")]
    ).decode().split() == [address for address in expected if "-worker-" in address]
    (service,) = small_cluster.request("GET", f"/api/v1/namespaces/{given_namespace}/services")["items"]
    assert (service["spec"]["clusterIP"], service["spec"]["publishNotReadyAddresses"]) == ("None", True)
    cloud.backend.remove("job")


def test_a_pod_calls_itself_as_volcano_does_and_finds_the_others_by_such_names() -> None:
    spec = manifest(ordered({"svc": []}, "worker", 1))["spec"]
    assert (spec["hostname"], spec["subdomain"]) == ("digits-worker-1", "job-job")
    assert spec["dnsConfig"] == {"searches": ["job-job.hekla.svc.cluster.local"]}


def test_jobs_of_one_name_have_different_addresses() -> None:
    assert not set(addresses("one").values()) & set(addresses("other").values())


def test_lists_of_hosts_are_where_jobs_of_volcano_look_for_them() -> None:
    order = ordered({"svc": []})
    found = files_at(manifest(order), order, "/etc/volcano")
    assert found["worker.host"][0] == "digits-worker-0.job-job\ndigits-worker-1.job-job\n"
    assert found["worker.host"][1] & 0o444 == 0o444


@pytest.mark.parametrize(
    ("arguments", "path", "mode"),
    [([], "/root/.ssh", 0o600), (["--ssh-key-file-path=/home/mpi/.ssh"], "/home/mpi/.ssh", 0o444)],
)
def test_keys_are_where_ssh_looks_and_may_be_read_by_whom_they_are_for(
    arguments: list[str], path: str, mode: int
) -> None:
    """Root's ssh refuses a key of its own that others may read; who is not root must be able to read root's files."""
    order = ordered({"ssh": arguments})
    found = files_at(manifest(order), order, path)
    assert set(found) == {"id_ed25519", "id_ed25519.pub", "authorized_keys", "config"}
    assert {file[1] for file in found.values()} == {mode}
    assert "Host digits-worker-1 digits-worker-1.digits\n  HostName digits-worker-1.job-job\n" in found["config"][0]
    assert f"IdentityFile {path}/id_ed25519\n" in found["config"][0]


def test_a_folder_that_is_nowhere_is_refused() -> None:
    for path in ("/", "etc", "/etc/../x", "/a:b"):
        with pytest.raises(StartRefused):
            manifest(dataclasses.replace(ordered({}), mounts={path: "etc"}))


@pytest.mark.kubernetes
@pytest.mark.parametrize("plugins", [{"svc": [], "ssh": []}, {"ssh": ["--ssh-key-file-path=/home/mpi/.ssh"]}])
def test_an_api_server_takes_such_pods(cloud: Place, plugins: dict[str, list[str]]) -> None:
    key = cloud.started(ordered(plugins, node=cloud.backend.nodes()[0].name))
    assert cloud.until(key, PodPhase.RUNNING)
    cloud.backend.remove("job")


@pytest.mark.kubernetes
@pytest.mark.parametrize(("arguments", "count"), [([], 1), (["--disable-network-policy=true"], 0)])
def test_only_pods_of_the_job_reach_one_another_unless_it_says_otherwise(
    cloud: Place, small_cluster: ControlPlane, given_namespace: str, arguments: list[str], count: int
) -> None:
    key = cloud.started(ordered({"svc": arguments}, node=cloud.backend.nodes()[0].name))
    place = f"/apis/networking.k8s.io/v1/namespaces/{given_namespace}/networkpolicies"
    found = small_cluster.request("GET", place)["items"]
    assert len(found) == count
    pod = small_cluster.request("GET", f"/api/v1/namespaces/{given_namespace}/pods/{key.name}")
    assert (names.CLOSED in pod["metadata"]["labels"]) == bool(count)
    for policy in found:
        ours = {"matchLabels": names.job_labels("c1", "job")}
        assert policy["spec"] == {
            "podSelector": ours, "policyTypes": ["Ingress"], "ingress": [{"from": [{"podSelector": ours}]}]
        }  # fmt: skip
        assert ours["matchLabels"].items() <= pod["metadata"]["labels"].items()
    cloud.backend.remove("job")
    assert not small_cluster.request("GET", place)["items"]
    assert not cloud.backend.inventory().present


@pytest.mark.kubernetes
def test_a_policy_that_came_late_is_found_and_taken_away(cloud: Place) -> None:
    backend = cloud.backend
    order = ordered({"svc": []})
    backend.parts.api.create(f"/apis/networking.k8s.io/v1/namespaces/{backend.parts.config.namespace}/networkpolicies",
                        Manifests("c1", KubernetesConfig()).policy(order.key.job))  # fmt: skip
    assert backend.inventory().present == {"job"}
    backend.remove("job")
    assert not backend.inventory().present
